"""`torchyard channel coverage`: the planned packages that a channel lacks."""

import click

from torchyard.cli.options import channel_argument, file_option, subset_option
from torchyard.cli.output import reports


@click.command("coverage")
@channel_argument
@file_option
@click.option("--version", metavar="VERSION", help="Version to look for, instead of the file's.")
@subset_option
@click.option("--fail-on-missing", is_flag=True, help="Fail if a package is missing.")
@reports("find_missing")
def command() -> None:
    """Compare CHANNEL with the plan: which packages are missing.

    Unplanned packages are listed, too.

    A channel of the file is compared with the subset published there, any other with the whole
    matrix.
    """
