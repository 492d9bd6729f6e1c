"""`torchyard farm`: builds plans on many machines."""

from collections.abc import Mapping
from typing import ClassVar

import click

from torchyard.cli.lazy_group import LazyGroup


class _Commands(LazyGroup):
    room: ClassVar[str] = "torchyard_farm.cli"
    lazy: ClassVar[Mapping[str, str]] = {
        "init": "init",
        "start": "start",
        "stop": "stop",
        "worker": "worker",
        "submit": "submit",
        "follow": "follow",
        "status": "status",
        "cancel": "cancel",
        "user": "user",
        "nightly": "nightly",
        "daily": "daily",
    }


@click.group("farm", cls=_Commands)
def command() -> None:
    """Build plans on many machines, with Buildbot.

    DIR is the directory of the master, which `init` creates.
    """
