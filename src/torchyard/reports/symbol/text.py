"""Which files define and need a symbol, for people."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from torchyard.reports.symbol.document import SymbolDocument, SymbolsDocument
from torchyard.reports.tables import and_more, indented

_SYMBOLS, _FILES = 20, 10


def symbols_report(document: SymbolsDocument) -> RenderableType:
    """Show each symbol with its files."""
    return Group(*_parts(document))


def _parts(document: SymbolsDocument) -> Iterator[RenderableType]:
    for number, symbol in enumerate(document.symbols[:_SYMBOLS]):
        if number:
            yield ""
        yield from _symbol(symbol)
    yield from and_more(len(document.symbols) - _SYMBOLS, 0)


def _symbol(symbol: SymbolDocument) -> Iterator[RenderableType]:
    yield indented(symbol.demangled, 0, style="bold")
    if symbol.demangled != symbol.name:
        yield indented(symbol.name, 0, style="dim")
    yield from _files("defined in", symbol.defined_in)
    yield from _files("needed by", symbol.needed_by)


def _files(title: str, names: Sequence[str]) -> Iterator[RenderableType]:
    yield indented(f"{title}{'' if names else ' no file here'}", 2)
    for name in names[:_FILES]:
        yield indented(name, 4)
    yield from and_more(len(names) - _FILES, 4)
