"""`torchyard diff`: what differs between two packages, and whether an extension still loads."""

from pathlib import Path

import click

from torchyard.app.progress import read_metered
from torchyard.checks.compare import Extension, compare_packages, extension_of
from torchyard.cli.options import json_option
from torchyard.errors import CheckError
from torchyard.package.contents import Contents, FaultKind, is_library
from torchyard.terminal.console import show, write
from torchyard.terminal.progress import ProgressLine


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--extension",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Check that this wheel or .so, built against BEFORE, loads with AFTER; 13 if not.",
)
@click.option("--all", "everything", is_flag=True, help="List everything, however much it is.")
@json_option
def command(
    *, before: Path, after: Path, extension: Path | None, everything: bool, as_json: bool
) -> None:
    """Show what differs between two packages: files, sizes, symbols, requirements.

    Packages may be of two kinds, such as a wheel and a libtorch zip.
    """
    old, new = _whole(before), _whole(after)
    diff = compare_packages(old, new, _extension(extension) if extension else None)
    if as_json:
        from torchyard.reports.document import encode

        write(encode(diff))
    else:
        from torchyard.host.demangle import demangled
        from torchyard.reports.compare.text import diff_symbols, package_diff_report

        readable = demangled(diff_symbols(diff, everything=everything))
        show(package_diff_report(diff, readable, everything=everything))
    if diff.extension and not diff.extension.loads:
        msg = f"{diff.extension.extension} would not load with {diff.after}"
        raise CheckError(msg, hint=f"compile it against {diff.after}")


def _whole(path: Path) -> Contents:
    """Read a package; refuse a truncated one, whose missing files would look removed."""
    contents = read_metered(path, ProgressLine)
    for kind, member, what in contents.faults:
        if kind in {FaultKind.STRUCTURE, FaultKind.BOMB}:
            where = f"{member} " if member else ""
            msg = f"`{path.name}` can't be compared: {where}{what}"
            raise CheckError(msg, hint="`torchyard check` lists all that is wrong with it")
    return contents


def _extension(path: Path) -> Extension:
    """Read what was built against a package: one library, or a package with some."""
    if not is_library(path.name):
        return extension_of(_whole(path))
    from torchyard.package.library import read_library

    return Extension(path.name, {path.name: read_library(path)})
