"""`torchyard ci`: files for CI providers, generated from the matrix."""

from collections.abc import Mapping
from typing import ClassVar

import click

from torchyard.cli.lazy_group import LazyGroup, command_modules


class _CiCommands(LazyGroup):
    lazy: ClassVar[Mapping[str, str]] = command_modules("ci")


@click.group("ci", cls=_CiCommands)
def command() -> None:
    """Generate files for CI providers from the matrix, and keep them true.

    Each job of a generated file is a torchyard command; the file has no logic of its own.
    """
