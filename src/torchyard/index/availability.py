"""The packages available in a channel: the newest version of each, and its platforms.

A head has the offers of all its parts, and the landing page is generated from them. Only files of
the newest version are parsed, as a project may have tens of thousands.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchyard.index.entry import Entry, cell_of
from torchyard.index.sections import fits_of, section_of
from torchyard.index.sort_keys import python_key, version_key
from torchyard.index.views import FileKind, kind_of, kinds_of, torch_label
from torchyard.model.identifier import parse
from torchyard.model.values import Value


class PackageOffer(Value, kw_only=True):
    """The newest version of a package in one variant, with its platforms and Pythons."""

    project: str
    name: str
    """The installer's name for it: conda calls the project `torch` `pytorch`."""
    variant: str
    version: str
    uploaded: str
    """When its most recent file was published."""
    platforms: dict[str, tuple[str, ...]] = {}
    """`linux-x86_64` → `cp311`, `cp312`; no Pythons if it works with any."""
    build: str = ""
    """The build strings of this variant of a conda package: `cu130_mkl_*`."""
    torch: str = ""
    """The release of torch that it is compiled against, `2.13`, or a range: `>=2.10`."""


def offers(part: str, entries: Iterable[Entry]) -> tuple[PackageOffer, ...]:
    """Return the newest versions that are not yanked, by package and variant."""
    section, name = section_of(part), part.partition("/")[2]
    live = [entry for entry in entries if entry.yanked is None]
    packages: dict[str, list[Entry]] = {name: live}
    if section.MANY_PROJECTS:
        packages = {}
        for entry in live:
            packages.setdefault(section.project(name, entry), []).append(entry)
    ranks = _ranks(live)
    return tuple(
        _offer(part, package, files)
        for package, found in sorted(packages.items())
        for files in _newest(found, ranks)
    )


_Rank = tuple[int, str]
"""A fast sort key: the position of the version without its local part, and the full version."""


def _ranks(entries: Iterable[Entry]) -> dict[str, _Rank]:
    """Return the rank of each version. Only the few versions without local parts are parsed."""
    public = {v: v.partition("+")[0] for v in {entry.version for entry in entries}}
    ordered = sorted(set(public.values()), key=lambda version: (version_key(version), version))
    positions = {version: rank for rank, version in enumerate(ordered)}
    return {version: (positions[short], version) for version, short in public.items()}


def _newest(entries: Sequence[Entry], ranks: Mapping[str, _Rank]) -> Iterator[list[Entry]]:
    """Yield the files of the newest version of each variant, and each torch."""
    versions: dict[FileKind, set[str]] = {}
    for kind, version in {(kind_of(entry), entry.version) for entry in entries}:
        versions.setdefault(_group(kind), set()).add(version)
    newest = {group: max(found, key=ranks.__getitem__) for group, found in sorted(versions.items())}
    groups = {kind: _group(kind) for kind in kinds_of(entries)}
    files = [entry for entry in entries if entry.version == newest[groups[kind_of(entry)]]]
    for group in newest:
        yield [entry for entry in files if groups[kind_of(entry)] == group]


def _group(kind: FileKind) -> FileKind:
    """Return the group of files offered together: a variant, and the displayed torch."""
    return kind[0], torch_label(kind[1])


def _offer(part: str, name: str, entries: list[Entry]) -> PackageOffer:
    """Return the offer for the files of one version."""
    newest = entries[0]
    pythons: dict[str, set[str]] = {}
    for entry in entries:
        for fit in fits_of(part, entry):
            pythons.setdefault(fit.platform, set()).add(fit.python)
    return PackageOffer(
        project=_project(part, name, newest),
        name=name,
        variant=newest.variant,
        version=newest.version,
        uploaded=max(entry.uploaded for entry in entries),
        platforms={
            platform: () if "" in found else tuple(sorted(found, key=python_key))
            for platform, found in sorted(pythons.items())
        },
        build=section_of(part).build_glob(newest),
        torch=torch_label(newest.torch),
    )


def _project(part: str, name: str, entry: Entry) -> str:
    """Return the project that users search for; for secondary packages, their own name."""
    section, cell = section_of(part), cell_of(entry)
    if not section.MANY_PROJECTS or cell is None or cell.package != section.PACKAGE:
        return name
    return parse(entry.cell).label.rpartition("-")[0]
