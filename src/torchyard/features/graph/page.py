"""The graph of a build or a package as a picture, as a page, and as text for Graphviz."""

from torchyard.features.graph.report import GraphReport
from torchyard.insight.link_graph import LinkNode
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.reports.layered import DrawnGraph, DrawnNode, draw_layers
from torchyard.reports.picture import PICTURE_FILTERS, SvgPicture
from torchyard.reports.templates import render_template

_WIDE, _NARROW = 1200, 366
_NAMED = 3
"""The most members of a group to name."""
LEGEND = {
    "program": "programs",
    "own": "the project's libraries",
    "bundled": "third-party code in the source or package",
    "outside": "the system, and other packages",
    "missing": "not found",
}


def graph_svg(document: GraphReport) -> str:
    """Draw the graph as a self-contained SVG file."""
    return render_template("graph.svg", PICTURE_FILTERS, picture=_draw(document, _WIDE))


def graph_html(document: GraphReport) -> str:
    """Write a self-contained page: the picture, and all nodes in tables."""
    filters = {**PICTURE_FILTERS, "size": show_size, "duration": show_duration}
    return render_template("graph.html", filters, **graph_values(document))


def graph_values(document: GraphReport) -> dict[str, object]:
    """Return a page's values for a graph: pictures for screens and phones, and a legend."""
    drawn = document.readable()
    kinds = {_drawn_kind(node) for node in drawn.nodes.values()}
    return {
        "document": document,
        "pictures": [_draw(document, width) for width in (_WIDE, _NARROW)],
        "legend": {kind: words for kind, words in LEGEND.items() if kind in kinds},
    }


def graph_dot(document: GraphReport) -> str:
    """Write the graph for Graphviz."""
    graph = document.readable()
    lines = ["digraph links {", "  node [shape=box, fontname=Helvetica, fontsize=10];"]
    for node in graph.nodes.values():
        label = "\\n".join(map(_escaped, (node.name, *node_lines(node))))
        style = "" if node.origin in ("project", "bundled") else ", style=dashed"
        lines.append(f'  "{_escaped(node.name)}" [label="{label}"{style}];')
    lines += [
        f'  "{_escaped(user)}" -> "{_escaped(library)}";'
        for user, needed in graph.links.items()
        for library in needed
    ]
    return "\n".join((*lines, "}")) + "\n"


def node_lines(node: LinkNode) -> list[str]:
    """Return the lines below a node's name: its kind, its size, and its time."""
    what = "headers only" if node.kind == "headers" else node.kind
    size = [show_size(node.bytes)] if node.bytes else []
    took = [show_count(node.units, "unit")] if node.units else []
    took += [show_duration(node.seconds)] if node.seconds else []
    if not node.members:
        lines = [", ".join([what, *size]), ", ".join(took)]
    else:
        left = len(node.members) - _NAMED
        more = f"and {left:,} more" if left > 0 else ""
        lines = [*node.members[:_NAMED], more, ", ".join([*size, *took])]
    return [line for line in lines if line]


def _draw(document: GraphReport, width: int) -> SvgPicture:
    graph = document.readable()
    nodes = {
        name: DrawnNode(name, _drawn_kind(node), (name, *node_lines(node)), _title(node))
        for name, node in graph.nodes.items()
    }
    edges = {user: set(needed) for user, needed in graph.links.items()}
    return draw_layers(
        DrawnGraph(nodes, edges),
        width,
        f"What {document.what} links",
        "Lines lead down to what is linked; those that follow from others are left out. "
        "The table below has all of them.",
    )


def _drawn_kind(node: LinkNode) -> str:
    if node.origin in ("missing", "bundled"):
        return node.origin
    if node.origin in ("system", "other"):
        return "outside"
    return "program" if node.kind == "program" or node.name == "programs" else "own"


def _title(node: LinkNode) -> str:
    words = [*(node.members or [node.kind]), *([node.file] if node.file else [])]
    return f"{node.name}: {', '.join(words)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
