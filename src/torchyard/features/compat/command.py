"""`torchyard compat`: with which torch releases an extension loads."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("compat")
@click.argument("wheels", nargs=-1, required=True, metavar="WHEEL...")
@click.option(
    "--torch",
    default="",
    metavar="LOW..[HIGH]",
    help="Compare with these releases, such as 2.10.. or 2.10..2.13, or with the wheel of a torch;"
    " else with the newest six.",
)
@click.option(
    "--abi",
    is_flag=True,
    help="Show the ABI classes alone, and how many builds would do; NAME==VERSION means all wheels"
    " of a release.",
)
@click.option(
    "--run",
    is_flag=True,
    help="Also install each wheel beside each release, and load it.",
)
@reports("compare_with_torch")
def command() -> None:
    """Show which torch releases a wheel loads with.

    Symbols and CUDA decide. WHEEL is a file, an address, or NAME==VERSION of the index. Only parts
    of torch's wheels are read, once; without --run, nothing is installed or imported.
    """
