"""`torchyard check`: check packages against rules."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import policy_option
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("check")
@click.argument("packages", nargs=-1, required=True)
@policy_option
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="GLOB",
    help="Check only these rules, even if they are off; `torchyard explain rule` lists them.",
)
@click.option("--html", metavar="FILE", help="Also write a page with diagrams.")
@reports("check_packages")
def command() -> None:
    """Check wheels, conda packages and zips.

    Packages that are named together are checked together: one may contain what another needs.
    """
