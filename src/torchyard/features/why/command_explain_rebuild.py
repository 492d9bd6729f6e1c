"""`torchyard explain rebuild`: why a job or a file was built again."""

import click

from torchyard.cli.options import file_option, names_argument, store_option
from torchyard.cli.output import reports


@click.command("why")
@names_argument("what", required=False, metavar="[JOB|FILE]")
@file_option
@store_option
@reports("explain_rebuild")
def command() -> None:
    """Say why a job or a file was built again, or will be.

    JOB is a job that runs or failed, by default the last one, or whose result is in the store: it
    is compared with the result before. FILE is a file that ninja makes in a build directory.
    """
