"""`torchyard compat`: with which torch releases an extension loads."""

import click

from torchyard.cli.options import json_option
from torchyard.errors import UsageError
from torchyard.terminal.console import say, show, write
from torchyard.terminal.progress import ProgressLine


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
    help="Also install each wheel beside each of the releases, and load it there.",
)
@json_option
def command(*, wheels: tuple[str, ...], torch: str, abi: bool, run: bool, as_json: bool) -> None:
    """Show with which torch releases wheels load, by their symbols and their CUDA.

    WHEEL is a file, an address, or NAME==VERSION of the index. Only parts of torch's wheels are
    read, once; without --run, nothing is installed or imported.
    """
    from torchyard.app.compat import compare_with_torch, measure_wheels, refuse_misfits
    from torchyard.reports.document import encode

    if abi and (torch or run):
        msg = "`--abi` compares with no torch"
        raise UsageError(msg, hint=f"leave out one of --abi and {'--torch' if torch else '--run'}")
    if abi:
        document = measure_wheels(wheels, meter=ProgressLine)
    else:
        document = compare_with_torch(wheels, torch=torch, run=run, meter=ProgressLine, on_line=say)
    if as_json:
        write(encode(document))
    else:
        from torchyard.host.demangle import demangled
        from torchyard.reports.compat.text import compat_report, first_symbols

        show(compat_report(document, demangled(first_symbols(document))))
    refuse_misfits(document)
