"""`torchyard channel restore`: restore a damaged channel."""

import click

from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


@click.command("restore")
@channel_argument
@click.option("--dry-run", is_flag=True, help="Only print what would be restored.")
@file_option
@reports("restore_channel")
def command() -> None:
    """Restore CHANNEL if its head or states are damaged.

    A damaged head is taken from its copy, or made of the states of its parts. A part whose state is
    damaged shows an earlier one: publish again what was published since. No package is deleted.
    """
