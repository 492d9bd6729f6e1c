"""The parts of a build or a package, and their links."""

from collections.abc import Callable, Iterable
from itertools import pairwise

from torchyard.checks.loader.resolve import outside_origins
from torchyard.checks.policies import load_policy
from torchyard.checks.subject import Subject
from torchyard.errors import SelectionError, UsageError
from torchyard.features.graph.report import Carried, GraphReport, Shipped, sorted_graph
from torchyard.insight.build_links import BuildLinks
from torchyard.insight.build_record import read_started_build
from torchyard.insight.link_graph import LinkGraph, LinkNode, chain, find_node, neighbourhood
from torchyard.insight.package_links import (
    carrying_symbols,
    joined,
    package_graph,
    symbols_in_files,
    symbols_in_package,
)
from torchyard.insight.shipped import linked_not_shipped, shipped_not_linked
from torchyard.package.contents import Contents
from torchyard.package.elf.linker_symbols import LinkerSymbols
from torchyard.toolchain.cmake import Configured, has_replies
from torchyard.workspace.build_files import BuildFiles, named_build, open_build, open_package

Symbols = Callable[[LinkNode, LinkNode], tuple[LinkerSymbols, LinkerSymbols]]
"""Returns the symbols of a user and of a library that it links."""


def graph_links(
    what: str | None = None,
    *,
    focus: str = "",
    why: tuple[str, str] | None = None,
    against: str = "",
    file: str = "torchyard.toml",
    store: str | None = None,
) -> GraphReport:
    """Read targets, libraries and their links.

    Args:
        what: A build directory, a package, or a job; by default, the last one that runs or failed.
        focus: A target or library to show with only its neighbours.
        why: Two of them: show the chain by which the first needs the second.
        against: A package of the build to compare it with.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    what = named_build(what, file)
    contents = open_package(what, file, store)
    if contents is not None:
        if against:
            msg = f"`{what}` is a package: only a build can be compared with one"
            raise UsageError(msg, hint="name the build first, and the package with --against")
        symbols = _package_symbols(contents)
        return _report(what, _package_graph(contents), symbols, focus=focus, why=why)
    with open_build(what, file, store) as files:
        links, graph = _build_graph(files)
        shipped = _shipped(graph, against, file, store) if against else None
        symbols = _build_symbols(files, links)
        return _report(what, graph, symbols, focus=focus, why=why, shipped=shipped)


def _report(
    what: str,
    graph: LinkGraph,
    symbols: Symbols,
    *,
    focus: str,
    why: tuple[str, str] | None,
    shipped: Shipped | None = None,
) -> GraphReport:
    name = find_node(graph, focus).name if focus else ""
    return GraphReport(
        what=what,
        focus=name,
        graph=sorted_graph(neighbourhood(graph, name) if name else graph),
        chain=_carried(graph, *why, symbols) if why else [],
        shipped=shipped,
    )


def _build_graph(files: BuildFiles) -> tuple[BuildLinks, LinkGraph]:
    record = read_started_build(files.folder)
    links = BuildLinks(record.edges)
    includes = Configured(files.folder).source_includes() if has_replies(files.folder) else None
    return links, links.graph(record.targets(), files.size, includes)


def _package_graph(contents: Contents) -> LinkGraph:
    return package_graph(contents, outside_origins(Subject(contents, load_policy("default"))))


def _shipped(graph: LinkGraph, against: str, file: str, store: str | None) -> Shipped:
    contents = open_package(against, file, store)
    if contents is None:
        msg = f"`{against}` is no package"
        raise SelectionError(msg, hint="name a wheel, a conda package or a libtorch zip")
    package = _package_graph(contents)
    return Shipped(
        contents.file_name, linked_not_shipped(graph, package), shipped_not_linked(graph, package)
    )


def _carried(graph: LinkGraph, start: str, end: str, symbols: Symbols) -> list[Carried]:
    first, last = find_node(graph, start).name, find_node(graph, end).name
    names = chain(graph, first, last)
    if first == last or not names:
        way = f"; {last} needs {first}" if chain(graph, last, first)[1:] else ""
        msg = f"{first} does not need {last}{way}"
        raise SelectionError(msg, hint="without --why, all links are listed")
    return [
        Carried(user, used, carrying_symbols(*symbols(graph.nodes[user], graph.nodes[used])))
        for user, used in pairwise(names)
    ]


def _build_symbols(files: BuildFiles, links: BuildLinks) -> Symbols:

    def read(paths: Iterable[str]) -> LinkerSymbols:
        known = list(paths)
        files.fetch(known)
        return joined(symbols_in_files(files.folder, known))

    def symbols(user: LinkNode, library: LinkNode) -> tuple[LinkerSymbols, LinkerSymbols]:
        """Return symbols of linked files for shared libraries, else of objects."""
        objects = links.objects(user.name)
        is_whole = files.size(user.file) and (library.is_linked or not objects)
        offered = [library.file] if library.file else links.objects(library.name)
        return read([user.file] if is_whole else objects), read(offered)

    return symbols


def _package_symbols(contents: Contents) -> Symbols:

    def symbols(user: LinkNode, library: LinkNode) -> tuple[LinkerSymbols, LinkerSymbols]:
        found = list(symbols_in_package(contents))
        first, second = (
            joined(file for file in found if file.file == node.file) for node in (user, library)
        )
        return first, second

    return symbols
