"""`torchyard channel mirror`: copy a part of another index into a channel."""

import click

from torchyard.cli.options import channel_argument, file_option, requirements_argument
from torchyard.cli.output import reports


@click.command("mirror")
@click.argument("source")
@channel_argument
@requirements_argument
@click.option("--python", "pythons", multiple=True, metavar="TAG", help="Only for Pythons: cp312.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="GLOB",
    help="Only for platforms: 'manylinux*_x86_64'.",
)
@click.option(
    "--variant", metavar="NAME", help="Variant for all files, regardless of their versions."
)
@click.option(
    "--allow-unhashed",
    "unhashed",
    is_flag=True,
    help="Accept files without hashes, which can't be verified.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be copied.")
@file_option
@reports("mirror_index")
def command() -> None:
    """Copy a part of another simple index into a channel.

    SOURCE is an address or a directory; a REQUIREMENT names projects and versions to copy, such as
    'torch==2.13.*'. Files are verified by their hashes on arrival, and published at once. An
    interrupted run continues where it stopped.
    """
