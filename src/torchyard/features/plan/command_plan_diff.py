"""`torchyard plan diff`: the effect of a change of the file on the plan."""

import click

from torchyard.cli.options import file_option, subset_option
from torchyard.cli.output import reports


@click.command("diff")
@click.argument("old")
@click.argument("new")
@file_option
@subset_option
@click.option("--fail-on-vanish", is_flag=True, help="Exit with 8 if a package vanishes.")
@reports("plan_difference")
def command() -> None:
    """Show which packages appear, vanish or are rebuilt, and why.

    OLD and NEW are files, or git revisions of the file given by -f.
    """
