"""`torchyard channel rollback`: restore an earlier generation of a channel."""

import click

from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


@click.command("rollback")
@channel_argument
@click.option("--generation", type=int, metavar="GENERATION", help="Generation to go back to.")
@click.option("--last", is_flag=True, help="Undo the last change.")
@file_option
@reports("roll_back")
def command() -> None:
    """Show again what CHANNEL showed at an earlier generation.

    This is a change like others, and can be rolled back itself. Files published since are hidden,
    and `torchyard channel prune` deletes them later. Pins and project statuses stay.
    """
