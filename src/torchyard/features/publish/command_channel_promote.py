"""`torchyard channel promote`: copy files between channels, by digest, without rebuilding."""

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
@click.option("--partial", is_flag=True, help="Promote although packages of the plan are missing.")
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that packages may require although the channel lacks them.",
)
@override_option
@click.option("--dry-run", is_flag=True, help="Only print what would be promoted, or why not.")
@file_option
@set_option
@reports("promote_packages")
def command() -> None:
    """Copy files of one channel to another, unchanged.

    All files appear at once, or none. An example of a REQUIREMENT is torch==2.14.0. The bytes stay
    those that were tested; only --local drop rewrites wheels and zips under the version without its
    local part, and changes nothing else. Earlier promotions are not changed.
    """
