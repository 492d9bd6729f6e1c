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

    A damaged head is restored from its copy, or rebuilt from the states of its parts. A part with a
    damaged state shows an earlier one: publish later packages again. No package is deleted.
    """
