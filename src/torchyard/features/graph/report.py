"""The parts of a build or a package, and their links."""

from collections.abc import Sequence
from typing import Literal

from torchyard.host.demangle import demangled
from torchyard.insight.link_graph import LinkGraph, LinkNode, fold_graph, reduce_links
from torchyard.insight.shipped import Unmatched
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, and_more, folded, indented, number, table
from torchyard.terminal.untrusted import printable

_LISTED = 40
_SYMBOLS = 5
_USERS = 3
_ORIGINS = ("project", "bundled", "other", "missing", "system")


class Carried(Reported):
    """A step of `--why`: a link with its symbols, or null if unknown."""

    user: str
    library: str
    symbols: list[str] | None


class Shipped(Reported):
    """The comparison of a build with a package."""

    package: str
    linked_not_shipped: list[Unmatched]
    shipped_not_linked: list[Unmatched]


class GraphReport(Reported, kw_only=True):
    """`torchyard graph --json`: all nodes, unfolded.

    With `--focus`, there are only that node and its neighbours; with `--why`, there is a `chain`.
    """

    version: Literal[1] = 1
    what: str
    focus: str = ""
    graph: LinkGraph
    chain: list[Carried]
    shipped: Shipped | None

    def readable(self) -> LinkGraph:
        """Return the graph to draw: folded, unless it is a node's neighbourhood."""
        return reduce_links(self.graph if self.focus else fold_graph(self.graph))


def sorted_graph(graph: LinkGraph) -> LinkGraph:
    """Return a graph with the largest nodes of each origin first."""

    def key(node: LinkNode) -> tuple[int, float, int, int, str]:
        origin = _ORIGINS.index(node.origin)
        return origin, -node.seconds, -node.units, -node.bytes, node.name

    nodes = sorted(graph.nodes.values(), key=key)
    return LinkGraph({node.name: node for node in nodes}, graph.links)


def graph_text(report: GraphReport) -> Lines:
    """Show the folded graph as a table, and differences from the package; or only the chain."""
    if report.chain:
        yield from _chain(report)
        return
    graph = report.readable()
    count = f"{len(report.graph.nodes):,} targets and libraries"
    drawn = (
        "" if len(graph.nodes) == len(report.graph.nodes) else f", folded to {len(graph.nodes):,}"
    )
    yield indented(f"{report.what}: {count}{drawn}", 0)
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
    if report.shipped:
        shipped = report.shipped
        yield from _unmatched(f"linked, not in {shipped.package}", shipped.linked_not_shipped)
        yield from _unmatched(f"in {shipped.package}, not linked", shipped.shipped_not_linked)


def _what(node: LinkNode) -> str:
    if node.members:
        return f"{len(node.members):,} {node.origin}"
    return node.kind if node.origin == "project" else f"{node.kind}, {node.origin}"


def _unmatched(title: str, rows: Sequence[Unmatched]) -> Lines:
    yield ""
    if not rows:
        yield indented(f"{title}: none", 0)
        return
    cells = ([printable(row.library), _some(row.users), row.why] for row in rows[:_LISTED])
    yield table([folded(title), folded("used by"), folded("why")], cells)
    yield from and_more(len(rows) - _LISTED, 0)


def _some(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _USERS:,} more"] if len(names) > _USERS else []
    return printable(", ".join([*names[:_USERS], *more]))


def _chain(report: GraphReport) -> Lines:
    names = [report.chain[0].user, *(step.library for step in report.chain)]
    yield indented(" → ".join(names), 0)
    for step in report.chain:
        yield ""
        symbols = step.symbols or []
        count = show_count(len(symbols), "symbol") if symbols else "it needs none of its symbols"
        known = count if step.symbols is not None else "their symbols are not known here"
        yield indented(f"{step.user} is linked with {step.library}: {known}", 0)
        listed = symbols[:_SYMBOLS]
        shown = demangled(listed)
        for symbol in listed:
            yield indented(shown.get(symbol, symbol), 2)
        yield from and_more(len(symbols) - _SYMBOLS, 2)
