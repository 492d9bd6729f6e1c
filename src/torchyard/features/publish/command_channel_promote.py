"""`torchyard channel promote`: from one channel into another, by digest and never by rebuild."""

import click

from torchyard.cli.options import (
    file_option,
    only_option,
    override_option,
    requirements_argument,
    set_option,
    variant_option,
)
from torchyard.cli.output import reports


@click.command("promote")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@requirements_argument
@variant_option
@only_option
@click.option(
    "--local",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="Keep or drop +cu130 in versions of wheels and zips.",
)
@click.option("--partial", is_flag=True, help="Promote though packages of the plan are missing.")
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that packages may require though the channel does not have them.",
)
@override_option
@click.option("--dry-run", is_flag=True, help="Only print what would be promoted, or why not.")
@file_option
@set_option
@reports("promote_packages")
def command() -> None:
    """Copy files of one channel to another, unchanged.

    All files appear at once, or none. A REQUIREMENT is such as torch==2.14.0. The bytes are those
    that were tested; only with --local drop, wheels and zips are written anew under the version
    without its local part, and nothing else in them changes. What was promoted before stays as it
    is.
    """
