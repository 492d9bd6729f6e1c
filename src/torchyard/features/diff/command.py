"""`torchyard diff`: what differs between two packages."""

import click

from torchyard.cli.output import reports


@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--all", "everything", is_flag=True, help="List everything, however much it is.")
@reports("diff_packages")
def command() -> None:
    """Show what differs between two packages: files, sizes, symbols, requirements.

    Packages may be of two kinds, such as a wheel and a libtorch zip.
    """
