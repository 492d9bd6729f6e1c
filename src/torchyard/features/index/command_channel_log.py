"""`torchyard channel log`: the changes of a channel."""

import click

from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


@click.command("log")
@channel_argument
@file_option
@reports("list_changes")
def command() -> None:
    """List the changes of CHANNEL, the newest first.

    `torchyard channel rollback` goes back to any generation that is listed.
    """
