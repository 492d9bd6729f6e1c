"""`torchyard diagnose`: why a build failed, from its log."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, names_argument, store_option, work_option
from torchyard.cli.output import reports


@in_section(HelpSection.UNDERSTAND)
@click.command("diagnose")
@names_argument("source", required=False, metavar="[LOG|JOB|-]")
@click.option(
    "--passed",
    "passed",
    multiple=True,
    metavar="LOG",
    help="Leave out what this log of a build that passed says, too.",
)
@click.option(
    "--failures",
    "files",
    multiple=True,
    metavar="FILE",
    help="Know the failures in this file, too, before those that torchyard knows.",
)
@click.option("--learn", is_flag=True, help="Draft an entry for --failures from the log.")
@file_option
@store_option
@work_option
@reports("diagnose_build")
def command() -> None:
    """Find the cause of a failure in a log, and what to do.

    LOG is the log of any build: of PyTorch or an extension, by CMake, ninja, nvcc, hipcc, pip,
    conda or CI; of any size, also compressed by gzip. `-` reads standard input. For a JOB, the last
    log is read, and what logs of the same job in the store say, too, is left out. Without LOG or
    JOB, it is that of the last job that runs or failed.
    """
