"""`torchyard diff`: what is different between two packages, and who would notice."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from torchyard.checks.compare import Extension, compare, extension_of, will_load
from torchyard.cli.options import json_option
from torchyard.cli.reading import read
from torchyard.errors import CheckError, HostError
from torchyard.package.contents import is_library
from torchyard.report.console import show, write

_MANGLED = re.compile(r"_Z[\w.$]+")


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--extension",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Tell whether this wheel or .so, built against BEFORE, loads with AFTER; 13 if not.",
)
@json_option
def command(*, before: Path, after: Path, extension: Path | None, as_json: bool) -> None:
    """Show what is different between two packages: files, sizes, symbols, what they need.

    Packages may be of two kinds, such as a wheel and a libtorch zip.
    """
    old, new = read(before), read(after)
    comparison = compare(old, new)
    answer = will_load(_extension(extension), old, new) if extension else None
    if as_json:
        from torchyard.inspect.compare_documents import compare_document
        from torchyard.inspect.document import encode

        write(encode(compare_document(comparison, answer)))
    else:
        from torchyard.inspect.compare_reports import compare_report, shown_symbols

        readable = _readable(shown_symbols(comparison, answer))
        show(compare_report(comparison, answer, readable))
    if answer and not answer.loads:
        msg = f"{answer.extension} would not load with {comparison.after}"
        raise CheckError(msg, hint=f"compile it against {comparison.after}")


def _extension(path: Path) -> Extension:
    """Read what was built against a package: one library, or a package with some."""
    if not is_library(path.name):
        return extension_of(read(path))
    from torchyard.package.library import read_library

    return Extension(path.name, {path.name: read_library(path)})


def _readable(symbols: Sequence[str]) -> dict[str, str]:
    """C++ names as they were written, if there is a program that can tell."""
    from torchyard.host.process import capture

    mangled = list(dict.fromkeys(symbol for symbol in symbols if _MANGLED.fullmatch(symbol)))
    if mangled:
        with suppress(HostError):
            lines = capture(["c++filt", *mangled], cwd=Path.cwd()).splitlines()
            return dict(zip(mangled, lines, strict=True))
    return {}
