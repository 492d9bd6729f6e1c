"""`torchyard farm`: builds plans on many machines."""

from collections.abc import Mapping

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section


class _Commands(LazyGroup):
    def lazy(self) -> Mapping[str, str]:
        names = "cancel daily follow init nightly start status stop submit user worker"
        return {name: f"torchyard_farm.cli.{name}" for name in names.split()}


@in_section(HelpSection.OPERATE)
@click.group("farm", cls=_Commands)
def command() -> None:
    """Build plans on many machines, with Buildbot.

    DIR is the directory of the master, which `init` creates.
    """
