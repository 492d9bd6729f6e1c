"""`torchyard publish`: publish packages in a channel, all at once or not at all."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, override_option, set_option, store_option
from torchyard.cli.output import reports


@in_section(HelpSection.PUBLISH)
@click.command("publish")
@click.argument("packages", nargs=-1, metavar="[RESULTS]...")
@click.option(
    "--to", "channel", required=True, metavar="CHANNEL", help="Name, address or directory."
)
@click.option("--partial", is_flag=True, help="Publish although packages of the plan are missing.")
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that packages may require although the channel lacks them.",
)
@click.option(
    "--upstream",
    multiple=True,
    metavar="URL",
    help="A simple index with these names, for the channel's install commands.",
)
@override_option
@click.option(
    "--variants",
    type=click.Choice(["compute", "compute-blas"]),
    help="What has a separate index, in a new channel.",
)
@click.option("--policy", metavar="NAME|FILE", help="How strictly to check.")
@click.option("--dry-run", is_flag=True, help="Only print what would be published, or why not.")
@file_option
@set_option
@store_option
@reports("publish_packages")
def command() -> None:
    """Publish packages to a channel: all at once, or not at all.

    RESULTS are files and directories; by default, all built packages. Everything is checked first:
    that no package of the plan is missing, that each belongs to its cell, has no errors and passed
    its smoke tests, that wheels of a version agree, and that all requirements are in the channel or
    declared external. Then all packages become visible at once.
    """
