"""`torchyard toolchain`: the toolchains of this machine."""

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section
from torchyard.cli.output import reports
from torchyard.terminal.console import write

file_option = click.option(
    "-f",
    "--file",
    metavar="FILE",
    help="Configuration to read; by default torchyard.toml if it exists.",
)


@in_section(HelpSection.START)
@click.group("toolchain", cls=LazyGroup, invoke_without_command=True)
@file_option
@reports("survey_machine")
def command() -> None:
    """Show the compilers, Pythons, GPU toolkits and BLAS found here.

    With a file, also show the parts for each compute platform and BLAS of its matrix, or why they
    are missing. Nothing is installed.
    """


@command.command("env")
@file_option
@click.option("--compute", metavar="NAME", default="", help="Such as cu130; by default cpu.")
@click.option("--blas", metavar="NAME", default="", help="Such as mkl.")
@click.option(
    "--work",
    "folder",
    metavar="DIR",
    default="",
    help="Directory of the job; by default the path in sandboxes.",
)
def print_variables(*, file: str | None, compute: str, blas: str, folder: str) -> None:
    """Print the variables that the steps of a job would see.

    Nothing is installed: parts from PyPI would be in the job's folder. `torchyard toolchain
    activate` installs them for a shell.
    """
    from torchyard.features.toolchain.use_case import job_variables

    write(job_variables(file, compute=compute, blas=blas, folder=folder))
