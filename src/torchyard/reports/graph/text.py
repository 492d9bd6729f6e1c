"""Which libraries are linked with which, for people."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from torchyard.host.demangle import demangled
from torchyard.insight.link_graph import LinkNode
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.reports.graph.document import GraphDocument, UnmatchedDocument
from torchyard.reports.graph.picture import readable_graph
from torchyard.reports.tables import and_more, folded, indented, number, table
from torchyard.terminal.untrusted import printable

_LISTED = 40
_SYMBOLS = 5
_USERS = 3


def graph_report(document: GraphDocument) -> RenderableType:
    """Show the folded graph as a table, and how build and package differ."""
    return Group(*_parts(document))


def _parts(document: GraphDocument) -> Iterator[RenderableType]:
    graph = readable_graph(document)
    count = f"{len(document.nodes):,} targets and libraries"
    drawn = "" if len(graph.nodes) == len(document.nodes) else f", folded to {len(graph.nodes):,}"
    yield indented(f"{document.what}: {count}{drawn}", 0)
    yield ""
    rows = (
        [
            printable(node.name),
            _what(node),
            show_size(node.bytes) if node.bytes else "",
            f"{node.units:,}" if node.units else "",
            show_duration(node.seconds) if node.seconds else "",
            printable(", ".join(graph.links.get(node.name, ()))),
        ]
        for node in list(graph.nodes.values())[:_LISTED]
    )
    columns = [folded("name"), folded("what"), number("size"), number("units"), number("time")]
    yield table([*columns, folded("links")], rows)
    yield from and_more(len(graph.nodes) - _LISTED, 0)
    if document.shipped:
        shipped = document.shipped
        yield from _unmatched(f"linked, not in {shipped.package}", shipped.linked_not_shipped)
        yield from _unmatched(f"in {shipped.package}, not linked", shipped.shipped_not_linked)


def _what(node: LinkNode) -> str:
    if node.members:
        return f"{len(node.members):,} {node.origin}"
    return node.kind if node.origin == "project" else f"{node.kind}, {node.origin}"


def _unmatched(title: str, rows: Sequence[UnmatchedDocument]) -> Iterator[RenderableType]:
    yield ""
    if not rows:
        yield indented(f"{title}: none", 0)
        return
    cells = ([printable(one.library), _some(one.users), one.why] for one in rows[:_LISTED])
    yield table([folded(title), folded("used by"), folded("why")], cells)
    yield from and_more(len(rows) - _LISTED, 0)


def _some(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _USERS:,} more"] if len(names) > _USERS else []
    return printable(", ".join([*names[:_USERS], *more]))


def chain_report(document: GraphDocument) -> RenderableType:
    """Show by which links one needs another, and which symbols carry each."""
    return Group(*_chain(document))


def _chain(document: GraphDocument) -> Iterator[RenderableType]:
    names = [document.chain[0].user, *(one.library for one in document.chain)]
    yield indented(" → ".join(names), 0)
    for one in document.chain:
        yield ""
        symbols = one.symbols or []
        count = show_count(len(symbols), "symbol") if symbols else "it needs none of its symbols"
        known = count if one.symbols is not None else "their symbols are not known here"
        yield indented(f"{one.user} is linked with {one.library}: {known}", 0)
        some = symbols[:_SYMBOLS]
        shown = demangled(some)
        for symbol in some:
            yield indented(shown.get(symbol, symbol), 2)
        yield from and_more(len(symbols) - _SYMBOLS, 2)
