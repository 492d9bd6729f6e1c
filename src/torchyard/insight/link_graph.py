"""The graph of linked targets and libraries, of a build or a package."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Literal

from torchyard.errors import SelectionError
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Reported

NodeKind = Literal["program", "module", "shared", "static", "objects", "headers", "group"]
"""The kind of a node; a group is several nodes drawn as one."""
Origin = Literal["project", "bundled", "other", "system", "missing"]
"""The origin of a node: the project, third-party code in its source or package, another package,
the system, or unknown."""

_FOLDED = 3
"""From this many, programs become one node."""
_VERSION = re.compile(
    r"(?:-[0-9a-f]{8}|\.cpython-[\w-]+|\.abi3)?(\.so|\.dylib)(?:\.\d+)*$|(?:\.\d+)+(\.dylib)$"
)


class LinkNode(Reported):
    """A target or library; `module` is its third-party project or package.

    Bytes, units and seconds are zero if unknown. A group has the names of its members.
    """

    name: str
    kind: NodeKind
    origin: Origin
    module: str = ""
    file: str = ""
    bytes: int = 0
    units: int = 0
    seconds: float = 0.0
    members: tuple[str, ...] = ()

    @property
    def is_linked(self) -> bool:
        """Whether the loader finds it, rather than it being part of what links it."""
        return self.kind in ("shared", "module")


class LinkGraph(Reported):
    """Nodes by name, and the names of the nodes that each links."""

    nodes: dict[str, LinkNode]
    links: dict[str, tuple[str, ...]]

    def users(self, name: str) -> list[str]:
        """Return the nodes that link a node."""
        return [user for user, needed in self.links.items() if name in needed]


def find_node(graph: LinkGraph, name: str) -> LinkNode:
    """Return a node by its name, or its file's name with or without `lib` and version."""
    if name in graph.nodes:
        return graph.nodes[name]
    wanted = library_name(name)
    for node in graph.nodes.values():
        if wanted in (library_name(node.name), library_name(node.file), _stem(node)):
            return node
    msg = f"there is no target or library `{name}`"
    raise SelectionError(msg, hint=did_you_mean(name, graph.nodes))


def library_name(path: str) -> str:
    """Return a library's name without folder, versions, Python's tag, and auditwheel's digest."""
    return _VERSION.sub(r"\1\2", path.rpartition("/")[2])


def _stem(node: LinkNode) -> str:
    """Return `torch_cpu` for `libtorch_cpu.so.2`."""
    return library_name(node.file or node.name).removeprefix("lib").partition(".")[0]


def neighbourhood(graph: LinkGraph, name: str) -> LinkGraph:
    """Return a node with the nodes that it links and that link it."""
    near = {name, *graph.links.get(name, ()), *graph.users(name)}
    return LinkGraph(
        {user: node for user, node in graph.nodes.items() if user in near},
        {
            user: tuple(other for other in needed if name in (user, other))
            for user, needed in graph.links.items()
            if user in near
        },
    )


def chain(graph: LinkGraph, start: str, end: str) -> list[str]:
    """Return the shortest chain of links between two nodes; empty if there is none."""
    before = {start: ""}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        if name == end:
            path = [name]
            while before[path[-1]]:
                path.append(before[path[-1]])
            return path[::-1]
        for needed in graph.links.get(name, ()):
            if needed not in before:
                before[needed] = name
                waiting.append(needed)
    return []


def fold_graph(graph: LinkGraph) -> LinkGraph:
    """Merge the nodes of each third-party project, of the system, and of many programs."""
    programs = [n for n in graph.nodes.values() if n.kind == "program" and n.origin == "project"]
    return _merged(graph, lambda node: _group(node, are_many=len(programs) >= _FOLDED))


def _group(node: LinkNode, *, are_many: bool) -> str:
    if node.origin == "system":
        return "system"
    if node.origin in ("bundled", "other") and node.module:
        return node.module
    if node.kind == "program" and node.origin == "project" and are_many:
        return "programs"
    return node.name


def _merged(graph: LinkGraph, group: Callable[[LinkNode], str]) -> LinkGraph:
    members: dict[str, list[LinkNode]] = {}
    for node in graph.nodes.values():
        members.setdefault(group(node), []).append(node)
    owner = {node.name: name for name, nodes in members.items() for node in nodes}
    links: dict[str, dict[str, None]] = {name: {} for name in members}
    for user, needed in graph.links.items():
        links[owner[user]].update((owner[name], None) for name in needed)
    return LinkGraph(
        {name: _one_of(name, nodes) for name, nodes in members.items()},
        {user: tuple(name for name in needed if name != user) for user, needed in links.items()},
    )


def _one_of(name: str, nodes: list[LinkNode]) -> LinkNode:
    if [node.name for node in nodes] == [name]:
        return nodes[0]
    return LinkNode(
        name,
        "group",
        nodes[0].origin,
        bytes=sum(node.bytes for node in nodes),
        units=sum(node.units for node in nodes),
        seconds=sum(node.seconds for node in nodes),
        members=tuple(node.name for node in nodes),
    )


def reduce_links(graph: LinkGraph) -> LinkGraph:
    """Remove links implied by a chain of others, to keep a picture readable."""
    reach = cache(partial(_reachable, graph.links))

    def is_implied(user: str, target: str) -> bool:
        """Return whether another link, outside of cycles, leads to the target."""
        return any(
            target in reach(other) and user not in reach(other) and other not in reach(target)
            for other in graph.links[user]
            if other != target
        )

    return LinkGraph(
        graph.nodes,
        {
            user: tuple(name for name in needed if not is_implied(user, name))
            for user, needed in graph.links.items()
        },
    )


def _reachable(links: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Return all nodes reachable from a node."""
    seen: set[str] = set()
    waiting = list(links.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += links.get(name, ())
    return seen
