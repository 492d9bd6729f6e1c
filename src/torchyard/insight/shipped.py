"""Compare a build's link lines with the contents of its package."""

from collections.abc import Iterator

from torchyard.insight.link_graph import LinkGraph, LinkNode, library_name
from torchyard.model.values import Reported

_REASONS = {
    "missing": "nothing that the package requires brings it",
    "system": "the system has it",
}


class Unmatched(Reported):
    """A library that is linked but not shipped, or the reverse; its users; and why."""

    library: str
    users: tuple[str, ...]
    why: str


def linked_not_shipped(build: LinkGraph, package: LinkGraph) -> list[Unmatched]:
    """Return the shared libraries that files of the package link, but the package lacks.

    Static libraries are parts of the files that link them.
    """
    shipped = set(_shipped(package))
    outside = {library_name(n.name): n for n in package.nodes.values() if not n.file}
    found = []
    for node in build.nodes.values():
        name = _library(node)
        users = tuple(u for u in build.users(node.name) if _library(build.nodes[u]) in shipped)
        if node.is_linked and users and name not in shipped:
            found.append(Unmatched(node.name, users, _why_outside(outside.get(name))))
    return found


def shipped_not_linked(build: LinkGraph, package: LinkGraph) -> list[Unmatched]:
    """Return the package's programs and libraries that the build neither made nor linked."""
    known = {_library(node) for node in build.nodes.values()}
    found = []
    for name, node in _shipped(package).items():
        if name not in known:
            users = tuple(package.users(node.name))
            why = "shipped files need it" if users else "nothing in the package needs it"
            found.append(Unmatched(node.name, users, why))
    return found


def _shipped(package: LinkGraph) -> dict[str, LinkNode]:
    return dict(_in_package(package))


def _in_package(package: LinkGraph) -> Iterator[tuple[str, LinkNode]]:
    for node in package.nodes.values():
        if node.file:
            yield _library(node), node


def _library(node: LinkNode) -> str:
    return library_name(node.file or node.name)


def _why_outside(node: LinkNode | None) -> str:
    if node is None:
        return "nothing in the package needs it when it is loaded"
    return _REASONS.get(node.origin, f"{node.module} brings it")
