"""What a channel has to offer: the newest version of everything, and what it is for.

A head has the offers of all its parts, and the landing page is made of them. Only the files of the
newest version are looked at closely, as a project may have tens of thousands.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchyard.index.entry import Entry, cell_of
from torchyard.index.order import age, python_order
from torchyard.index.sections import fits_of, section_of
from torchyard.model.identifier import parse
from torchyard.model.values import Value


class PackageOffer(Value, kw_only=True):
    """The newest version of a package in one variant, and the platforms and Pythons it is for."""

    project: str
    name: str
    """As its installer calls it: conda's package of the project `torch` is `pytorch`."""
    variant: str
    version: str
    uploaded: str
    """When the last of its files was published."""
    platforms: dict[str, tuple[str, ...]] = {}
    """`linux-x86_64` → `cp311`, `cp312`; no Pythons if none matters."""
    build: str = ""
    """Of a conda package: the build strings of this variant, `cu130_mkl_*`."""


def offers(part: str, entries: Iterable[Entry]) -> tuple[PackageOffer, ...]:
    """The newest versions that nobody took back, by package and variant."""
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
"""What is quick to compare: the place of a version without its local part, and all of it."""


def _ranks(entries: Iterable[Entry]) -> dict[str, _Rank]:
    """Where each version stands among all. Without their local parts they are few."""
    public = {version: version.partition("+")[0] for version in {one.version for one in entries}}
    ordered = sorted(set(public.values()), key=lambda version: (age(version), version))
    places = {version: place for place, version in enumerate(ordered)}
    return {version: (places[short], version) for version, short in public.items()}


def _newest(entries: Sequence[Entry], ranks: Mapping[str, _Rank]) -> Iterator[list[Entry]]:
    """The files of the newest version of each variant."""
    versions: dict[str, list[str]] = {}
    for variant, version in {(entry.variant, entry.version) for entry in entries}:
        versions.setdefault(variant, []).append(version)
    newest = {
        variant: max(found, key=ranks.__getitem__) for variant, found in sorted(versions.items())
    }
    files = [entry for entry in entries if entry.version == newest[entry.variant]]
    for variant in newest:
        yield [entry for entry in files if entry.variant == variant]


def _offer(part: str, name: str, entries: list[Entry]) -> PackageOffer:
    """The offer of the files of one version."""
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
            platform: () if "" in found else tuple(sorted(found, key=python_order))
            for platform, found in sorted(pythons.items())
        },
        build=section_of(part).build_glob(newest),
    )


def _project(part: str, name: str, entry: Entry) -> str:
    """What people look for it as: the project, unless the package is a lesser part of one."""
    section, cell = section_of(part), cell_of(entry)
    if not section.MANY_PROJECTS or cell is None or cell.package != section.PACKAGE:
        return name
    return parse(entry.cell).label.rpartition("-")[0]
