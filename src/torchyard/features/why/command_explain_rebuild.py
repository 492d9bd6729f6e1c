"""`torchyard explain rebuild`: why a job or a file was rebuilt."""

import click

from torchyard.cli.options import file_option, names_argument, store_option
from torchyard.cli.output import reports


@click.command("why")
@names_argument("what", required=False, metavar="[JOB|FILE]")
@file_option
@store_option
@reports("explain_rebuild")
def command() -> None:
    """Show why a job or a file was rebuilt, or will be.

    JOB is a job that runs or failed, by default the last one, or has a result in the store: it is
    compared with the previous result. FILE is an output of ninja in a build directory.
    """
