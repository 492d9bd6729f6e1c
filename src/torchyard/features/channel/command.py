"""`torchyard channel`: changes and contents of channels."""

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section


@in_section(HelpSection.PUBLISH)
@click.group("channel", cls=LazyGroup)
def command() -> None:
    """Change a channel, check it, and list its contents.

    CHANNEL is its name in the file, its address or its directory.
    """
