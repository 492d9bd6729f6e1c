"""Print what a command has found: a report for people, or JSON for machines."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from torchyard.terminal.console import show, write

if TYPE_CHECKING:  # slow to import
    import msgspec
    from rich.console import RenderableType

_D = TypeVar("_D", bound="msgspec.Struct")


def show_document(document: _D, report: "Callable[[_D], RenderableType]", *, as_json: bool) -> None:
    """Print a document as JSON, or the report of it."""
    from torchyard.reports.document import encode

    if as_json:
        write(encode(document))
    else:
        show(report(document))
