"""Layered drawings of graphs: each node is below all nodes that need it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from torchyard.reports.picture import LETTER, LINE, Line, PictureText, Rect, Shape, SvgPicture
from torchyard.terminal.progress import shorten

_WIDTH, _PAD = 164, 6
_GAP, _LAYER = 12, 46
"""Distances between nodes, and between layers."""
_SWEEPS = 8
_LAST = ("outside", "missing")
"""The kinds of nodes in the last layer."""


class DrawnNode(NamedTuple):
    """A node; its kind selects the colour."""

    name: str
    kind: str
    lines: tuple[str, ...]
    title: str

    @property
    def height(self) -> int:
        return len(self.lines) * LINE + 2 * _PAD


class DrawnGraph(NamedTuple):
    """Nodes by name, and the names that each node needs."""

    nodes: dict[str, DrawnNode]
    edges: dict[str, set[str]]


class _Bend(NamedTuple):
    """The point where lines to a node cross a row, between its nodes."""

    target: str
    row: int


_Spot = str | _Bend
"""An element of a row: a node's name, or a bend."""


def draw_layers(graph: DrawnGraph, width: int, title: str, description: str) -> SvgPicture:
    """Draw a graph from top to bottom; external nodes are in the last layer."""
    rows = _rows(graph, max(1, (width - _GAP) // (_WIDTH + _GAP)))
    routes = _routes(graph, rows)
    rects = _positions(graph, _untangled(rows, routes), width)
    height = max((rect.y + rect.height for rect in rects.values()), default=0.0) + _GAP
    return SvgPicture(
        "graph",
        width,
        round(height),
        title,
        description,
        tuple(_shape(node, rects[name]) for name, node in graph.nodes.items()),
        tuple(_line([rects[spot] for spot in r], graph.nodes[str(r[-1])].kind) for r in routes),
    )


def _rows(graph: DrawnGraph, fit: int) -> list[list[_Spot]]:
    """Return the rows from top to bottom; a layer with too many nodes takes several."""
    return [
        [*layer[start : start + fit]]
        for layer in _layers(graph)
        for start in range(0, len(layer), fit)
    ]


def _routes(graph: DrawnGraph, rows: list[list[_Spot]]) -> list[list[_Spot]]:
    """Return the spots of each line, and add its bends to their rows."""
    number = {spot: n for n, row in enumerate(rows) for spot in row}
    routes: list[list[_Spot]] = []
    for source, targets in graph.edges.items():
        for target in sorted(targets):
            between = range(number[source] + 1, number[target])
            routes.append([source, *(_Bend(target, n) for n in between), target])
    for bend in {spot for route in routes for spot in route if isinstance(spot, _Bend)}:
        rows[bend.row].append(bend)
    for row in rows:
        row.sort(key=str)
    return routes


def _positions(graph: DrawnGraph, rows: list[list[_Spot]], width: int) -> dict[_Spot, Rect]:
    rects: dict[_Spot, Rect] = {}
    y = float(_GAP)
    for row in rows:
        nodes = [graph.nodes[spot] for spot in row if isinstance(spot, str)]
        height = max(node.height for node in nodes)
        free = width - (len(row) + 1) * _GAP
        wide = min(_WIDTH, free / len(nodes))
        x = (width - wide * len(nodes) - (len(row) - 1) * _GAP) / 2
        for spot in row:
            if isinstance(spot, _Bend):
                rects[spot] = Rect(x, y, 0, height)
            else:
                rects[spot] = Rect(x, y, wide, graph.nodes[spot].height)
            x += rects[spot].width + _GAP
        y += height + _LAYER
    return rects


def _layers(graph: DrawnGraph) -> list[list[str]]:
    """Put each node below all that need it, and external ones into the last layer."""
    depth = {name: 0 for name, node in graph.nodes.items() if node.kind not in _LAST}
    needed = {target for targets in graph.edges.values() for target in targets}
    begun: set[str] = set()
    for first in ([name for name in depth if name not in needed], depth):
        _deepen(graph, depth, [name for name in first if name not in begun], begun)
    own: dict[int, list[str]] = {}
    for name, row in depth.items():
        own.setdefault(row, []).append(name)
    outside = [name for name in graph.nodes if name not in depth]
    return [layer for layer in (*(own[row] for row in sorted(own)), outside) if layer]


def _deepen(
    graph: DrawnGraph, depth: dict[str, int], first: Iterable[str], begun: set[str]
) -> None:
    """Put the needs of nodes below them, recursively."""
    raised = dict.fromkeys(first)
    for _ in depth:
        begun |= raised.keys()
        before, raised = raised, {}
        for source in before:
            for target in sorted(graph.edges.get(source, ())):
                # Cycles would never end.
                if target in depth and depth[target] <= depth[source] < len(depth) - 1:
                    depth[target] = depth[source] + 1
                    raised[target] = None


def _untangled(rows: list[list[_Spot]], routes: list[list[_Spot]]) -> list[list[_Spot]]:
    """Sort each row by its spots' neighbours, a few times up and down."""
    around: dict[_Spot, set[_Spot]] = {spot: set() for row in rows for spot in row}
    for above, below in (pair for route in routes for pair in pairwise(route)):
        around[above].add(below)
        around[below].add(above)
    middle = {spot: _middle(i, row) for row in rows for i, spot in enumerate(row)}
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 else reversed(rows):
            wanted = {
                spot: sum(middle[other] for other in around[spot]) / max(1, len(around[spot]))
                for spot in row
            }
            row.sort(key=lambda spot: wanted[spot])
            middle |= {spot: _middle(i, row) for i, spot in enumerate(row)}
    return rows


def _middle(index: int, row: Sequence[_Spot]) -> float:
    """Return the position of a spot in a row, relative to the middle."""
    return index - (len(row) - 1) / 2


def _line(rects: list[Rect], kind: str) -> Line:
    """Draw a line from the first rectangle to the last; it crosses bends straight down."""
    first = rects[0]
    path = f"M{first.x + first.width / 2:.0f} {first.y + first.height:.1f}"
    for above, rect in pairwise(rects):
        x, y = above.x + above.width / 2, above.y + above.height
        end, middle = rect.x + rect.width / 2, (y + rect.y) / 2
        path += f"C{x:.0f} {middle:.1f} {end:.0f} {middle:.1f} {end:.0f} {rect.y:.1f}"
        if not rect.width:
            path += f"V{rect.y + rect.height:.1f}"
    return Line(kind, path)


def _shape(node: DrawnNode, rect: Rect) -> Shape:
    room = int((rect.width - 10) / LETTER)
    texts = tuple(
        PictureText(round(rect.x) + 6, rect.y + _PAD + LINE * number - 4, shorten(line, room))
        for number, line in enumerate(node.lines, start=1)
    )
    return Shape(node.kind, node.title, rect._replace(x=round(rect.x)), texts, corner=4)
