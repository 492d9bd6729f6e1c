"""`torchyard symbol`: which files define a symbol, and which need it."""

import click

from torchyard.cli.options import build_argument, file_option, json_option, store_option
from torchyard.cli.output import show_document


@click.command("symbol")
@click.argument("name")
@build_argument
@file_option
@store_option
@json_option
def command(
    *, name: str, what: str | None, file: str, store_url: str | None, as_json: bool
) -> None:
    """Show which files define a symbol, and which need it.

    NAME is a symbol as it is in files, or demangled: c10::Error::what, with or without scopes and
    parameters, or a glob. In a build directory, objects and static libraries are looked at, too.
    """
    from torchyard.app.symbol import locate_symbol
    from torchyard.reports.symbol.text import symbols_report

    document = locate_symbol(name, what, file=file, store=store_url)
    show_document(document, symbols_report, as_json=as_json)
