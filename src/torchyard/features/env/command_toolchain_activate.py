"""`torchyard toolchain activate`: the toolchain of a cell, for a shell outside of any job."""

import click

from torchyard.cli.options import file_option, selector_argument, set_option
from torchyard.cli.output import reports


@click.command("activate")
@selector_argument
@file_option
@set_option
@click.option(
    "-o",
    "--output",
    "install",
    metavar="DIR",
    help="Directory of environments, instead of .torchyard/env.",
)
@click.option(
    "--shell", type=click.Choice(["bash", "zsh", "fish"]), help="Print the script to source."
)
@click.option("--diff", is_flag=True, help="Show which variables of this shell would change.")
@reports("lay_out_environment")
def command() -> None:
    """Install a cell's toolchain, and print how to activate it.

    It has everything its jobs compile with: the compiler by its plain names, CMake, ninja, CUDA or
    ROCm, BLAS, and a Python environment with the build requirements and pip. SELECTOR selects a
    single Python of a block, such as cpu-mkl/cp312; it is optional if the file has only one.

    Source the printed script; `torchyard_deactivate` restores the shell. The system is not changed,
    and existing parts are not installed again.
    """
