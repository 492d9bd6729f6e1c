"""What `torchyard graph --format json` prints."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from torchyard.insight.link_graph import LinkGraph, LinkNode, NodeKind, Origin
from torchyard.insight.shipped import Unmatched
from torchyard.reports.document import JsonDocument


class NodeDocument(JsonDocument, kw_only=True):
    """A target or a library, and the names of the others that it is linked with.

    `module` is the third-party project or package that it belongs to. `seconds` is the time of all
    commands of a target together. What is not known is zero or empty.
    """

    name: str
    kind: NodeKind
    origin: Origin
    module: str
    file: str
    bytes: int
    units: int
    seconds: float
    links: list[str]


class ChainLinkDocument(JsonDocument, kw_only=True):
    """A step of `--why`: one is linked with the other, for these symbols; null if not known."""

    user: str
    library: str
    symbols: list[str] | None


class UnmatchedDocument(JsonDocument, kw_only=True):
    """A library that only the build or only the package has, what uses it there, and why."""

    library: str
    users: list[str]
    why: str


class ShippedDocument(JsonDocument, kw_only=True):
    """The build held against a package."""

    package: str
    linked_not_shipped: list[UnmatchedDocument]
    shipped_not_linked: list[UnmatchedDocument]


class GraphDocument(JsonDocument, kw_only=True):
    """`torchyard graph --format json`: all nodes, with nothing folded.

    With `--focus`, only that node and its neighbours are there; with `--why`, `chain` is.
    """

    version: Literal[1] = 1
    what: str
    focus: str = ""
    nodes: list[NodeDocument]
    chain: list[ChainLinkDocument]
    shipped: ShippedDocument | None


class Carried(NamedTuple):
    """A step of a chain, and the symbols that carry it."""

    user: str
    library: str
    symbols: list[str] | None


class Shipped(NamedTuple):
    """What differs between a build and a package."""

    package: str
    linked_not_shipped: Sequence[Unmatched]
    shipped_not_linked: Sequence[Unmatched]


def graph_document(
    what: str,
    graph: LinkGraph,
    *,
    focus: str = "",
    carried: Sequence[Carried] = (),
    shipped: Shipped | None = None,
) -> GraphDocument:
    """Describe a graph, the largest nodes of each kind first."""
    return GraphDocument(
        what=what,
        focus=focus,
        nodes=[_node(node, graph.links.get(node.name, ())) for node in _sorted(graph)],
        chain=[
            ChainLinkDocument(user=one.user, library=one.library, symbols=one.symbols)
            for one in carried
        ],
        shipped=_shipped(shipped) if shipped else None,
    )


_ORIGINS = ("project", "bundled", "other", "missing", "system")


def _sorted(graph: LinkGraph) -> list[LinkNode]:
    def key(node: LinkNode) -> tuple[int, float, int, int, str]:
        origin = _ORIGINS.index(node.origin)
        return origin, -node.seconds, -node.units, -node.bytes, node.name

    return sorted(graph.nodes.values(), key=key)


def _node(node: LinkNode, links: Sequence[str]) -> NodeDocument:
    return NodeDocument(
        name=node.name,
        kind=node.kind,
        origin=node.origin,
        module=node.module,
        file=node.file,
        bytes=node.bytes,
        units=node.units,
        seconds=round(node.seconds, 3),
        links=list(links),
    )


def _shipped(shipped: Shipped) -> ShippedDocument:
    return ShippedDocument(
        package=shipped.package,
        linked_not_shipped=[_unmatched(one) for one in shipped.linked_not_shipped],
        shipped_not_linked=[_unmatched(one) for one in shipped.shipped_not_linked],
    )


def _unmatched(one: Unmatched) -> UnmatchedDocument:
    return UnmatchedDocument(library=one.library, users=list(one.users), why=one.why)


def described_graph(document: GraphDocument) -> LinkGraph:
    """Return the graph that a document describes."""
    return LinkGraph(
        {
            one.name: LinkNode(
                one.name,
                one.kind,
                one.origin,
                one.module,
                one.file,
                one.bytes,
                one.units,
                one.seconds,
            )
            for one in document.nodes
        },
        {one.name: tuple(one.links) for one in document.nodes},
    )
