"""What `torchyard symbol --json` prints."""

from collections.abc import Sequence
from typing import Literal

from torchyard.insight.symbols import FoundSymbol
from torchyard.reports.document import JsonDocument


class SymbolDocument(JsonDocument, kw_only=True):
    """A symbol with its demangled name, the files that define it, and those that need it."""

    name: str
    demangled: str
    defined_in: list[str]
    needed_by: list[str]


class SymbolsDocument(JsonDocument, kw_only=True):
    """`torchyard symbol --json`: the symbols of a name, in the files of a build or package."""

    version: Literal[1] = 1
    what: str
    files: int
    symbols: list[SymbolDocument]


def symbols_document(what: str, files: int, found: Sequence[FoundSymbol]) -> SymbolsDocument:
    """Describe what was found in a number of files."""
    return SymbolsDocument(
        what=what,
        files=files,
        symbols=[
            SymbolDocument(
                name=one.name,
                demangled=one.demangled,
                defined_in=list(one.defined_in),
                needed_by=list(one.needed_by),
            )
            for one in found
        ],
    )
