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
    help="Directory of environments, in place of .torchyard/env.",
)
@click.option(
    "--shell", type=click.Choice(["bash", "zsh", "fish"]), help="Print the script to source."
)
@click.option("--diff", is_flag=True, help="Show which variables of this shell would change.")
@reports("lay_out_environment")
def command() -> None:
    """Lay out a cell's toolchain, and print how to activate it.

    That is all that its jobs compile with: the compiler by its plain names, CMake, ninja, CUDA or
    ROCm, BLAS, and a Python environment with the build requirements and pip. SELECTOR leaves
    one Python of one block, such as cpu-mkl/cp312; it can be left out if the file has no other.

    Source the script that is named; `torchyard_deactivate` restores the shell. Nothing of the
    system is changed. What is there already is not installed again.
    """
