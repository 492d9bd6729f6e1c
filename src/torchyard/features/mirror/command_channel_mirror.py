"""`torchyard channel mirror`: take a part of another index into a channel."""

import click

from torchyard.cli.options import file_option
from torchyard.cli.output import reports


@click.command("mirror")
@click.argument("source")
@click.option("--to", "channel", required=True, metavar="CHANNEL", help="Where the files go.")
@click.option(
    "--select",
    "selects",
    multiple=True,
    required=True,
    metavar="REQUIREMENT",
    help="Projects and versions to take, such as 'torch==2.13.*'.",
)
@click.option("--python", "pythons", multiple=True, metavar="TAG", help="Only for these: cp312.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="GLOB",
    help="Only for these: 'manylinux*_x86_64'.",
)
@click.option(
    "--variant", metavar="NAME", help="Variant for all files, whatever their versions say."
)
@click.option(
    "--allow-unhashed",
    "unhashed",
    is_flag=True,
    help="Take files without hashes, which can't be verified.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be taken.")
@file_option
@reports("mirror_index")
def command() -> None:
    """Copy a part of another simple index into a channel.

    SOURCE is an address or a directory. Files are verified by their hashes on arrival; all are
    published at once. A run that was interrupted continues where it stopped.
    """
