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
    help="Ignore lines that are also in this log of a passed build.",
)
@click.option(
    "--failures",
    "files",
    multiple=True,
    metavar="FILE",
    help="Also recognise the failures in this file, before torchyard's own.",
)
@click.option("--learn", is_flag=True, help="Draft an entry for --failures from the log.")
@file_option
@store_option
@work_option
@reports("diagnose_build")
def command() -> None:
    """Find the cause of a failure in a log, and a fix.

    LOG is the log of any build: of PyTorch or an extension, by CMake, ninja, nvcc, hipcc, pip,
    conda or CI; of any size, plain or compressed by gzip. `-` reads standard input. For a JOB, its
    last log is read, without lines that are also in the job's logs in the store. By default, it is
    the log of the last job that runs or failed.
    """
