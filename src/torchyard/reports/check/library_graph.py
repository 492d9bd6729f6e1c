"""Which library needs which, as a picture: what is loaded first is at the top."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torchyard.model.quantity import show_count, show_size
from torchyard.package.contents import is_library
from torchyard.reports.check.document import LibraryDocument, PackageDocument
from torchyard.reports.check.picture import LETTER, LINE, Line, PictureText, Rect, Shape, SvgPicture
from torchyard.terminal.board import shorten

_WIDTH, _PAD = 164, 6
_GAP, _LAYER = 12, 46
"""How far nodes are from each other, and layers."""
_SHOWN = 4
"""How many libraries of one owner have a line of their own."""
_FOLDED = 3
"""So many programs of one folder become one node."""
_SWEEPS = 4


class LibraryNode(NamedTuple):
    """Something that needs libraries or is one."""

    name: str
    kind: str
    """own, program, outside or missing."""
    lines: tuple[str, ...]
    title: str

    @property
    def height(self) -> int:
        return len(self.lines) * LINE + 2 * _PAD


class LibraryGraph(NamedTuple):
    """Nodes by name, and the names that each needs."""

    nodes: dict[str, LibraryNode]
    edges: dict[str, set[str]]


def library_graph(package: PackageDocument, width: int) -> SvgPicture:
    """Draw the libraries of a package in layers: each is below all that need it."""
    graph = _graph(package)
    places = _places(graph, width)
    height = max(place.y + place.height for place in places.values()) + _GAP
    missing = sum(node.kind == "missing" for node in graph.nodes.values())
    return SvgPicture(
        "graph",
        width,
        round(height),
        "Programs and libraries, and what they need",
        f"Lines lead down to what is needed. Not found: {missing}. "
        "The table below has the same as text.",
        tuple(_shape(node, places[name]) for name, node in graph.nodes.items()),
        tuple(
            _edge(places[source], places[target], graph.nodes[target].kind)
            for source, targets in graph.edges.items()
            for target in sorted(targets)
        ),
    )


def _places(graph: LibraryGraph, width: int) -> dict[str, Rect]:
    """Lay out the layers from top to bottom; one with too many nodes takes several rows."""
    fit = max(1, (width - _GAP) // (_WIDTH + _GAP))
    places: dict[str, Rect] = {}
    y = float(_GAP)
    for layer in _layers(graph):
        for start in range(0, len(layer), fit):
            row = layer[start : start + fit]
            x = (width - len(row) * (_WIDTH + _GAP) + _GAP) / 2
            for name in row:
                places[name] = Rect(x, y, _WIDTH, graph.nodes[name].height)
                x += _WIDTH + _GAP
            y += max(graph.nodes[name].height for name in row) + _GAP
        y += _LAYER - _GAP
    return places


def _graph(package: PackageDocument) -> LibraryGraph:
    nodes: dict[str, LibraryNode] = {}
    edges: dict[str, set[str]] = {}
    named = _named(package.libraries)
    owners = _owners(package.outside)
    folds = _folds(package.libraries)
    for library in package.libraries:
        folder = folds.get(library.member)
        name = f"{folder}/*" if folder is not None else library.member
        edges.setdefault(name, set()).update(
            named[needed] if needed in named else owners[needed]
            for needed in library.needed
            if needed in named or needed in owners
        )
        edges[name].discard(name)
        if folder is None:
            nodes[name] = _own(library)
    for folder in dict.fromkeys(folds.values()):
        count = sum(other == folder for other in folds.values())
        title = f"{show_count(count, 'program')} in {folder}"
        nodes[f"{folder}/*"] = LibraryNode(
            f"{folder}/*", "program", (folder, f"{count} programs"), title
        )
    for owner in dict.fromkeys(owners.values()):
        inside = [library for library, other in owners.items() if other == owner]
        nodes[owner] = _outside(owner, inside, package.outside)
    return LibraryGraph(nodes, edges)


def _named(libraries: Iterable[LibraryDocument]) -> dict[str, str]:
    """Members by the names that others can need them by."""
    named = {library.member.rpartition("/")[2]: library.member for library in libraries}
    return {**named, **{library.soname: library.member for library in libraries if library.soname}}


def _owners(outside: Mapping[str, str]) -> dict[str, str]:
    """The node of every library that is not in the package; what is missing stands alone."""
    return {library: f"from {owner}" if owner else library for library, owner in outside.items()}


def _folds(libraries: Sequence[LibraryDocument]) -> dict[str, str]:
    """Programs that are drawn as their folder, because there are many of them."""
    folders: dict[str, list[str]] = {}
    for library in libraries:
        if not is_library(library.member):
            folders.setdefault(library.member.rpartition("/")[0], []).append(library.member)
    return {
        member: folder
        for folder, members in folders.items()
        if len(members) >= _FOLDED
        for member in members
    }


def _own(library: LibraryDocument) -> LibraryNode:
    folder, _, base = library.member.rpartition("/")
    ceiling = glibc_ceiling(library)
    size = show_size(library.bytes) + (f", {ceiling}" if ceiling else "")
    title = f"{library.member}: {size}; needs {', '.join(library.needed) or 'nothing'}"
    kind = "own" if is_library(base) else "program"
    return LibraryNode(library.member, kind, (base, size), f"{title} ({folder})")


def glibc_ceiling(library: LibraryDocument) -> str:
    """The newest glibc that a library asks for: `glibc 2.28`."""
    asked = [
        version.removeprefix("GLIBC_")
        for versions in library.version_needs.values()
        for version in versions
        if version.startswith("GLIBC_") and version[len("GLIBC_") :][:1].isdigit()
    ]
    newest = max(asked, key=_numbers, default="")
    return f"glibc {newest}" if newest else ""


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _outside(name: str, inside: Sequence[str], outside: Mapping[str, str]) -> LibraryNode:
    if not outside[inside[0]]:
        lines = (f"✗ {name}", "not found")
        return LibraryNode(
            name, "missing", lines, f"{name} is needed, and nothing declared brings it"
        )
    listed = sorted(inside)[:_SHOWN]
    if len(inside) > _SHOWN:
        listed.append(f"and {len(inside) - _SHOWN} more")
    title = f"{name}: {', '.join(sorted(inside))}"
    return LibraryNode(name, "outside", (name, *listed), title)


def _layers(graph: LibraryGraph) -> list[list[str]]:
    """Put each node below all that need it; those from outside are in the last layer."""
    depth = {name: 0 for name, node in graph.nodes.items() if node.kind in ("own", "program")}
    for _ in depth:  # in a circle depths would grow for ever
        deeper = {
            target: depth[source] + 1
            for source, targets in graph.edges.items()
            for target in targets
            if target in depth and depth[target] <= depth[source] < len(depth) - 1
        }
        if not deeper:
            break
        depth |= deeper
    own = [[name for name in depth if depth[name] == d] for d in sorted(set(depth.values()))]
    outside = [name for name in graph.nodes if name not in depth]
    return _untangled(graph, [layer for layer in (*own, outside) if layer])


def _untangled(graph: LibraryGraph, layers: list[list[str]]) -> list[list[str]]:
    """Sort each layer by where its nodes' neighbours are, a few times up and down."""
    around: dict[str, set[str]] = {name: set(graph.edges.get(name, ())) for name in graph.nodes}
    for source, targets in graph.edges.items():
        for target in targets:
            around[target].add(source)
    place = {name: _middle(i, layer) for layer in layers for i, name in enumerate(layer)}
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 else reversed(layers):
            wanted = {
                name: sum(place[other] for other in around[name]) / max(1, len(around[name]))
                for name in layer
            }
            layer.sort(key=lambda name: wanted[name])
            place |= {name: _middle(i, layer) for i, name in enumerate(layer)}
    return layers


def _middle(index: int, layer: Sequence[str]) -> float:
    """Where a node of a layer is, counted from the middle."""
    return index - (len(layer) - 1) / 2


def _edge(source: Rect, target: Rect, kind: str) -> Line:
    x, y = source.x + source.width / 2, source.y + source.height
    end = target.x + target.width / 2
    middle = (y + target.y) / 2
    path = f"M{x:.0f} {y:.1f}C{x:.0f} {middle:.1f} {end:.0f} {middle:.1f} {end:.0f} {target.y:.1f}"
    return Line(kind, path)


def _shape(node: LibraryNode, place: Rect) -> Shape:
    room = int((place.width - 10) / LETTER)
    texts = tuple(
        PictureText(round(place.x) + 6, place.y + _PAD + LINE * number - 4, shorten(line, room))
        for number, line in enumerate(node.lines, start=1)
    )
    return Shape(node.kind, node.title, place._replace(x=round(place.x)), texts, corner=4)
