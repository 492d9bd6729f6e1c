"""What the libraries of a build are made of: trees, archives, and libraries to bundle."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import file_digest
from itertools import chain
from pathlib import Path, PurePath

from torchyard.insight.build_links import BuildLinks, module_of
from torchyard.insight.ninja_file import read_ninja_file
from torchyard.insight.static_links import noted_links, static_links
from torchyard.insight.vendored_trees import vendored_trees
from torchyard.package.elf.file import read_elf
from torchyard.package.sbom.component import Component, ComponentKind, Facts
from torchyard.package.sbom.license_text import license_of_texts
from torchyard.package.sbom.owner import owner_of, project_licenses

Find = Callable[[str], Path | None]
"""A function that finds an installed library by its name."""


def take_inventory(  # noqa: PLR0913 - where a build leaves what is known
    source: Path,
    libraries: Path,
    vendor: Path | None,
    links: Path | None,
    *,
    find: Find,
    folders: Sequence[Path],
) -> Facts:
    """Return what the libraries in a folder are made of, by the build in a source tree.

    `vendor` has the third-party libraries that packages may bundle, `links` link commands besides
    those of ninja; `folders` are those in which the compiler finds libraries.
    """
    trees = tuple(vendored_trees(source))
    elfs = [path for path in sorted(libraries.rglob("*")) if path.is_file()]
    names = {path.name for path in elfs if (elf := read_elf(path)) and elf.dynamic}
    archives: dict[Path, set[str]] = {}
    modules: dict[Path, str] = {}
    linked: set[str] = set()
    by_ninja = ((read_ninja_file(f), f.parent) for f in sorted(source.rglob("build.ninja")))
    for edges, here in chain(by_ninja, noted_links(links) if links else ()):
        found = static_links(edges, here, names, folders)
        linked |= found.linked
        for path, users in found.archives.items():
            archives.setdefault(path.resolve(), set()).update(users)
        if found.archives:
            nodes = BuildLinks(edges).graph().nodes.values()
            modules |= {(here / n.file).resolve(): n.module for n in nodes if n.module}
    bundled = sorted(path for path in vendor.glob("*") if path.is_file()) if vendor else ()
    top = source.resolve()
    return Facts(
        license=license_of_texts(project_licenses(source)),
        components=(
            *trees,
            *(_installed(ComponentKind.BUNDLED, path, find(path.name)) for path in bundled),
            *(
                _built(path.relative_to(top), users, modules.get(path, ""), trees)
                if path.is_relative_to(top)
                else _installed(ComponentKind.STATIC, path, path, users)
                for path, users in sorted(archives.items())
            ),
        ),
        unseen=tuple(sorted(names - linked)),
    )


def _installed(
    kind: ComponentKind, copy: Path, original: Path | None, users: Iterable[str] = ()
) -> Component:
    """Return a library of the system, or of a wheel."""
    owner = owner_of(original) if original else None
    version, license_, named = owner[:3] if owner else ("", "", "")
    digest = ""
    if copy.is_file():
        with copy.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    return Component(
        kind=kind,
        name=copy.name,
        version=version,
        license=license_,
        purl=named,
        digest=digest,
        files=tuple(sorted(users)),
    )


def _built(
    archive: PurePath, users: Iterable[str], module: str, trees: Iterable[Component]
) -> Component:
    """Return an archive of the build, with what is known of the third-party tree it is made of."""
    own = archive.as_posix()
    folder = module or module_of(own)
    made_of = [tree for tree in trees if tree.path.rpartition("/")[2] == folder]
    tree = min(made_of, key=lambda tree: tree.path.count("/"), default=None)
    return Component(
        kind=ComponentKind.STATIC,
        name=archive.name,
        version=tree.version if tree else "",
        license=tree.license if tree else "",
        purl=tree.purl if tree else "",
        path=own,
        made_of=tree.path if tree else "",
        files=tuple(sorted(users)),
    )
