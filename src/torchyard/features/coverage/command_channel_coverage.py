"""`torchyard channel coverage`: what a channel lacks of a plan."""

import click

from torchyard.cli.options import channel_argument, file_option, subset_option
from torchyard.cli.output import reports


@click.command("coverage")
@channel_argument
@file_option
@click.option("--version", metavar="VERSION", help="Version to look for, in place of the file's.")
@subset_option
@click.option("--fail-on-missing", is_flag=True, help="Fail if a package is missing.")
@reports("find_missing")
def command() -> None:
    """Compare CHANNEL with the plan: which packages are missing.

    Packages that are not planned are listed, too.

    A channel of the file is compared with the subset that is published there, any other with the
    whole matrix.
    """
