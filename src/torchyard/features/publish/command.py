"""`torchyard publish`: packages into a channel, all at once or not at all."""

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
@click.option("--partial", is_flag=True, help="Publish though packages of the plan are missing.")
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that packages may require though the channel does not have them.",
)
@click.option(
    "--upstream",
    multiple=True,
    metavar="URL",
    help="A simple index that has these names; the channel's commands for users name it.",
)
@override_option
@click.option(
    "--variants",
    type=click.Choice(["compute", "compute-blas"]),
    help="What has an index of its own, in a channel that is new.",
)
@click.option("--policy", metavar="NAME|FILE", help="How strictly to check.")
@click.option("--dry-run", is_flag=True, help="Only print what would be published, or why not.")
@file_option
@set_option
@store_option
@reports("publish_packages")
def command() -> None:
    """Publish packages to a channel: all at once, or not at all.

    RESULTS are files and directories; without any, all that was built.
    Everything is checked first: whether the plan's packages are all there, whether each is that
    of its cell, has no errors and passed its smoke tests, whether wheels of a version agree, and
    whether all that they require is in the channel or declared external. Then all of them become
    visible at once.
    """
