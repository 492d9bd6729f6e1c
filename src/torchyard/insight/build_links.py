"""Reads from a build directory which target is linked with which, and what each is made of."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path

from msgspec.structs import replace

from torchyard.insight.build_record import OTHERS, TargetTime, is_object, target_of
from torchyard.insight.link_graph import LinkGraph, LinkNode, NodeKind, Origin
from torchyard.insight.ninja_file import Edge

Sizes = Callable[[str], int]
"""Returns the size of a build's file by its path, or 0 if it is missing."""

_LINKER = re.compile(r"_([A-Z]+(?:_[A-Z]+)?)_LINKER__")
_KINDS: Mapping[str, NodeKind] = {
    "EXECUTABLE": "program",
    "MODULE_LIBRARY": "module",
    "SHARED_LIBRARY": "shared",
    "SHARED_MODULE": "module",
    "STATIC_LIBRARY": "static",
}
"""The kinds of targets that CMake's rules link."""
_SYMLINK = "CMAKE_SYMLINK_"
_SHARED = re.compile(r"\.(?:so(?:\.\d+)*|dylib|dll|pyd)$")
_STATIC = re.compile(r"\.(?:a|lib)$")
_LIBRARY = re.compile(rf"{_SHARED.pattern}|{_STATIC.pattern}|^-l")
THIRD_PARTY = r"(?:third[_-]?party|external|extern|submodules|vendor)"
_MODULE = re.compile(
    rf"(?:^|/){THIRD_PARTY}/(?P<folder>[^/]+)/"
    r"|(?:^|/)_deps/(?P<fetched>[^/]+)-(?:src|build)/"
)
"""Folders in which projects keep third-party sources; `THIRD_PARTY` are usual names."""


def module_of(path: str) -> str:
    """Return the third-party project of a source file, if any."""
    found = _MODULE.search(path)
    return (found["folder"] or found["fetched"]) if found else ""


class BuildLinks:
    """The targets of a build, from ninja's commands."""

    def __init__(self, edges: Sequence[Edge]) -> None:
        self._objects: dict[str, str] = {}
        self._sources: dict[str, list[str]] = {}
        self._linked: dict[str, Edge] = {}
        self._kinds: dict[str, NodeKind] = {}
        self._aliases: dict[str, str] = {}
        for edge in edges:
            if edge.is_phony or not edge.outputs:
                continue
            if is_object(edge.outputs[0]):
                self._add_unit(edge)
            elif edge.rule.startswith(_SYMLINK):
                links = product(edge.outputs, edge.inputs[:1])
                self._aliases.update(links)
            elif kind := _kind(edge):
                target = _target_linked(edge)
                self._linked[target] = edge
                self._kinds[target] = kind
        self._adopt_units()
        self._root = _common_folder(name for names in self._sources.values() for name in names)

    def _add_unit(self, edge: Edge) -> None:
        target = target_of(edge.outputs[0], edge.rule)
        self._objects[edge.outputs[0]] = target
        self._sources.setdefault(target, []).extend(edge.inputs[:1])

    def _adopt_units(self) -> None:
        """Assign units without telling names to the first target that links them."""
        self._sources.pop(OTHERS, None)
        for target, edge in self._linked.items():
            for name in edge.inputs:
                if self._objects.get(name) == OTHERS:
                    self._objects[name] = target
                    self._sources.setdefault(target, []).append(name)

    def objects(self, target: str) -> list[str]:
        """Return the objects of a target."""
        return [name for name, owner in self._objects.items() if owner == target]

    def files(self) -> list[str]:
        """Return all linked files and their objects."""
        return [*(edge.outputs[0] for edge in self._linked.values()), *self._objects]

    @cached_property
    def _targets(self) -> dict[str, str]:
        """Targets by the files they make."""
        return {name: t for t, edge in self._linked.items() for name in edge.outputs}

    def graph(
        self,
        times: Iterable[TargetTime] = (),
        sizes: Sizes = lambda _path: 0,
        includes: Mapping[str, Iterable[str]] | None = None,
    ) -> LinkGraph:
        """Return all targets, and the external libraries that they link.

        `includes` are the targets' include directories in the source, which reveal third-party
        projects of which only headers are used.
        """
        seconds = {time.name: time.seconds for time in times}
        nodes: dict[str, LinkNode] = {}
        links: dict[str, tuple[str, ...]] = {}
        for target in dict.fromkeys((*self._linked, *self._sources)):
            nodes[target] = self._node(target, seconds.get(target, 0.0), sizes)
            links[target] = tuple(dict.fromkeys(self._needed(target)))
        for name in (name for needed in tuple(links.values()) for name in needed):
            if name not in nodes:
                nodes[name] = _outside(name)
                links[name] = ()
        graph = LinkGraph({name: _named(node) for name, node in nodes.items()}, links)
        return _with_headers(_renamed(graph), includes or {})

    def _node(self, target: str, seconds: float, sizes: Sizes) -> LinkNode:
        sources = self._sources.get(target, [])
        edge = self._linked.get(target)
        file = edge.outputs[0] if edge else ""
        paths = sources or [file]
        modules = Counter(module_of(path.removeprefix(self._root)) for path in paths)
        module = modules.most_common(1)[0][0] if modules else ""
        origin: Origin = "bundled" if module else "project"
        kind = self._kinds.get(target, "objects")
        made = [file] if file else self.objects(target)
        return LinkNode(
            target, kind, origin, module, file, sum(map(sizes, made)), len(sources), seconds
        )

    def _needed(self, target: str) -> Iterable[str]:
        edge = self._linked.get(target)
        if edge is None:
            return
        is_archive = self._kinds[target] == "static"
        ordered = edge.ordered if is_archive else ()
        for name in (*edge.inputs, *ordered, *edge.libraries):
            owner = self._objects.get(name) or self._targets.get(self._aliases.get(name, name))
            if owner and owner != target:
                yield owner
            elif not owner and _LIBRARY.search(name):
                yield name


def _common_folder(paths: Iterable[str]) -> str:
    """Return the common folder of all absolute paths: the source."""
    absolute = [path for path in paths if os.path.isabs(path)]  # noqa: PTH117 - there are many
    return os.path.commonpath([min(absolute), max(absolute)]) if absolute else ""


def file_size(folder: Path) -> Sizes:
    """Return a function for the sizes of files in a build directory."""

    def size(path: str) -> int:
        try:
            return os.stat(folder / path).st_size  # noqa: PTH116 - a Path would be made again
        except (OSError, ValueError):  # a name may be too long, or contain a null byte
            return 0

    return size


def _kind(edge: Edge) -> NodeKind | None:
    """Return the kind of target that a command links, or None."""
    if found := _LINKER.search(edge.rule):
        return _KINDS.get(found[1])
    if any(is_object(name) for name in edge.inputs):
        if _SHARED.search(edge.outputs[0]):
            return "shared"
        if _STATIC.search(edge.outputs[0]):
            return "static"
    return None


def _target_linked(edge: Edge) -> str:
    target = target_of("", edge.rule)
    return target if target != OTHERS else edge.outputs[0].rpartition("/")[2]


def _outside(name: str) -> LinkNode:
    """Return the node of an external library on a link line."""
    kind: NodeKind = "static" if _STATIC.search(name) else "shared"
    return LinkNode(name, kind, "system", file="" if name.startswith("-l") else name)


def _named(node: LinkNode) -> LinkNode:
    """Name a library by its file: `/usr/lib/libm.so` and `-lm` are libm.so."""
    if node.name.startswith("-l"):
        return replace(node, name=f"lib{node.name[2:]}.so")
    if node.origin != "system":
        return node
    size = file_size(Path("/"))
    return replace(node, name=Path(node.file).name or node.file, bytes=size(node.file))


def _renamed(graph: LinkGraph) -> LinkGraph:
    names = {old: node.name for old, node in graph.nodes.items()}
    links: dict[str, tuple[str, ...]] = {}
    for user, needed in graph.links.items():
        links[names[user]] = tuple(dict.fromkeys(names[one] for one in needed))
    return LinkGraph({node.name: node for node in graph.nodes.values()}, links)


def _with_headers(graph: LinkGraph, includes: Mapping[str, Iterable[str]]) -> LinkGraph:
    """Add third-party projects that are used only by their headers."""
    known = {node.module for node in graph.nodes.values()}
    nodes, links = dict(graph.nodes), dict(graph.links)
    for target, folders in includes.items():
        if target not in nodes:
            continue
        found = {module_of(f"{folder}/") for folder in folders} - known - {nodes[target].module}
        for module in sorted(found - {""}):
            nodes[module] = LinkNode(module, "headers", "bundled")
            links[target] = (*links[target], module)
            links.setdefault(module, ())
    return LinkGraph(nodes, links)
