"""`torchyard diff`: what differs between two packages."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--all", "everything", is_flag=True, help="List everything, without a limit.")
@reports("diff_packages")
def command() -> None:
    """Show how two packages differ: files, symbols, requirements.

    Packages may have different formats, such as a wheel and a libtorch zip.
    """
