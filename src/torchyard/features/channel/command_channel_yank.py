"""`torchyard channel yank`: yank files."""

import click

from torchyard.cli.options import (
    channel_argument,
    file_option,
    only_option,
    requirements_argument,
    variant_option,
)
from torchyard.cli.output import reports


@click.command("yank")
@channel_argument
@requirements_argument
@variant_option
@only_option
@click.option(
    "--reason", metavar="TEXT", help="The reason, which readers see; needed unless --undo is given."
)
@click.option("--undo", is_flag=True, help="Offer the files again.")
@file_option
@reports("yank_files")
def command() -> None:
    """Mark files of CHANNEL as not to be installed.

    Installers use them only if exactly that version is requested. Examples of a REQUIREMENT:
    torch==2.14.0, torch==2.14.0.dev2026*, torch. Conda's solvers no longer see such packages.
    Nothing is deleted.
    """
