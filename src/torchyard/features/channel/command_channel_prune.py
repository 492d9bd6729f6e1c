"""`torchyard channel prune`: keep a channel small."""

import click

from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


@click.command("prune")
@channel_argument
@click.option(
    "--keep", type=click.IntRange(1), metavar="N", help="Keep the newest N versions of a project."
)
@click.option(
    "--keep-days",
    type=click.IntRange(1, 36_500),
    metavar="N",
    help="Keep versions with a file of the last N days.",
)
@click.option("--project", "projects", multiple=True, metavar="GLOB", help="Only these projects.")
@click.option(
    "--grace", default="7 d", show_default=True, help="Delete files that were hidden for longer."
)
@click.option(
    "--orphans",
    is_flag=True,
    help="List all objects, and delete leftovers of killed publishers older than --grace.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be hidden or deleted.")
@file_option
@reports("prune_files")
def command() -> None:
    """Hide old versions in CHANNEL, and delete them later.

    All variants of a version go together. The newest version of each project stays, and so do
    pinned ones. Without --keep and --keep-days, nothing more is hidden. Pages that a killed
    publisher left are rewritten.
    """
