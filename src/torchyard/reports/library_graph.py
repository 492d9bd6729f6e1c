"""A picture of which libraries need which; the first loaded is at the top."""

from collections.abc import Iterable, Mapping, Sequence

from torchyard.checks.checked import CheckedLibrary, CheckedPackage
from torchyard.model.quantity import show_count, show_size
from torchyard.package.contents import is_library
from torchyard.reports.layered import DrawnGraph, DrawnNode, draw_layers
from torchyard.reports.picture import SvgPicture

_SHOWN = 4
"""The most libraries of an owner with separate lines."""
_FOLDED = 3
"""From this many, a folder's programs become one node."""


def library_graph(package: CheckedPackage, width: int) -> SvgPicture:
    """Draw a package's libraries in layers: each is below all that need it."""
    graph = _graph(package)
    missing = sum(node.kind == "missing" for node in graph.nodes.values())
    return draw_layers(
        graph,
        width,
        "Programs and libraries, and what they need",
        f"Lines lead down to what is needed. Not found: {missing}. "
        "The table below has the same as text.",
    )


def _graph(package: CheckedPackage) -> DrawnGraph:
    nodes: dict[str, DrawnNode] = {}
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
        nodes[f"{folder}/*"] = DrawnNode(
            f"{folder}/*", "program", (folder, f"{count} programs"), title
        )
    for owner in dict.fromkeys(owners.values()):
        inside = [library for library, other in owners.items() if other == owner]
        nodes[owner] = _outside(owner, inside, package.outside)
    return DrawnGraph(nodes, edges)


def _named(libraries: Iterable[CheckedLibrary]) -> dict[str, str]:
    """Members by the names under which others need them."""
    named = {library.member.rpartition("/")[2]: library.member for library in libraries}
    return {**named, **{library.soname: library.member for library in libraries if library.soname}}


def _owners(outside: Mapping[str, str]) -> dict[str, str]:
    """The nodes of external libraries; each missing library has its own."""
    return {library: f"from {owner}" if owner else library for library, owner in outside.items()}


def _folds(libraries: Sequence[CheckedLibrary]) -> dict[str, str]:
    """Programs that are drawn as their folder, because there are many."""
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


def _own(library: CheckedLibrary) -> DrawnNode:
    folder, _, base = library.member.rpartition("/")
    ceiling = glibc_ceiling(library)
    size = show_size(library.bytes) + (f", {ceiling}" if ceiling else "")
    title = f"{library.member}: {size}; needs {', '.join(library.needed) or 'nothing'}"
    kind = "own" if is_library(base) else "program"
    return DrawnNode(library.member, kind, (base, size), f"{title} ({folder})")


def glibc_ceiling(library: CheckedLibrary) -> str:
    """The newest glibc that a library needs: `glibc 2.28`."""
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


def _outside(name: str, inside: Sequence[str], outside: Mapping[str, str]) -> DrawnNode:
    if not outside[inside[0]]:
        lines = (f"✗ {name}", "not found")
        return DrawnNode(
            name, "missing", lines, f"{name} is needed, and nothing declared brings it"
        )
    listed = sorted(inside)[:_SHOWN]
    if len(inside) > _SHOWN:
        listed.append(f"and {len(inside) - _SHOWN} more")
    title = f"{name}: {', '.join(sorted(inside))}"
    return DrawnNode(name, "outside", (name, *listed), title)
