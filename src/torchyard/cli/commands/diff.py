"""`torchyard diff`: what differs between two packages."""

from pathlib import Path

import click

from torchyard.checks.compare import compare_packages
from torchyard.cli.options import json_option
from torchyard.errors import CheckError
from torchyard.package.contents import Contents, FaultKind
from torchyard.terminal.console import show, write
from torchyard.terminal.progress import ProgressLine
from torchyard.workspace.progress import read_metered


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="List everything, however much it is.")
@json_option
def command(*, before: Path, after: Path, everything: bool, as_json: bool) -> None:
    """Show what differs between two packages: files, sizes, symbols, requirements.

    Packages may be of two kinds, such as a wheel and a libtorch zip.
    """
    diff = compare_packages(_whole(before), _whole(after))
    if as_json:
        from torchyard.terminal.json_output import encode

        write(encode(diff))
    else:
        from torchyard.host.demangle import demangled
        from torchyard.reports.compare.text import diff_symbols, package_diff_report

        readable = demangled(diff_symbols(diff, everything=everything))
        show(package_diff_report(diff, readable, everything=everything))


def _whole(path: Path) -> Contents:
    """Read a package; refuse a truncated one, whose missing files would look removed."""
    contents = read_metered(path, ProgressLine)
    for kind, member, what in contents.faults:
        if kind in {FaultKind.STRUCTURE, FaultKind.BOMB}:
            where = f"{member} " if member else ""
            msg = f"`{path.name}` can't be compared: {where}{what}"
            raise CheckError(msg, hint="`torchyard check` lists all that is wrong with it")
    return contents
