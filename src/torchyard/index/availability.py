"""What a channel has to offer: the newest version of everything, and what it is for.

A head has the offers of all its parts, and the landing page is made of them. Only the files of the
newest version are looked at closely, as a project may have tens of thousands.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from torchyard.config.tables import load_tables
from torchyard.index.conda.repodata import name_of
from torchyard.index.entry import Entry
from torchyard.model.identifier import ANY_PYTHON, Cell, parse
from torchyard.model.values import Value

ANY_PLATFORM = "any"
"""Stands in a platform's place for files that fit all of them."""


class Offer(Value, kw_only=True):
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


class Fit(NamedTuple):
    """What one file is for. No Python: any."""

    platform: str
    python: str = ""


def offers(part: str, entries: Iterable[Entry]) -> tuple[Offer, ...]:
    """The newest versions that nobody took back, by package and variant."""
    shelf, _, name = part.partition("/")
    live = [entry for entry in entries if entry.yanked is None]
    packages: dict[str, list[Entry]] = {name: live}
    if shelf == "conda":
        packages = {}
        for entry in live:
            packages.setdefault(name_of(entry.file), []).append(entry)
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


def age(version: str) -> tuple[bool, Version, tuple[tuple[int, str], ...], str]:
    """Where a version stands; those that differ in their local part are read only once."""
    public, _, local = version.partition("+")
    return (*_public_age(public), local)


@lru_cache(maxsize=10_000)
def _public_age(version: str) -> tuple[bool, Version, tuple[tuple[int, str], ...]]:
    """Where a version stands; one that Python does not know, by its numbers and words."""
    try:
        return True, Version(version), ()
    except InvalidVersion:
        words = re.findall(r"(\d+)|([A-Za-z]+)", version)
        return False, Version("0"), tuple((int(d) if d else -1, word) for d, word in words)


def _offer(part: str, name: str, entries: list[Entry]) -> Offer:
    """The offer of the files of one version."""
    newest = entries[0]
    pythons: dict[str, set[str]] = {}
    for entry in entries:
        for fit in fits_of(part, entry):
            pythons.setdefault(fit.platform, set()).add(fit.python)
    return Offer(
        project=_project(name, newest),
        name=name,
        variant=newest.variant,
        version=newest.version,
        uploaded=max(entry.uploaded for entry in entries),
        platforms={
            platform: () if "" in found else tuple(sorted(found, key=_python_order))
            for platform, found in sorted(pythons.items())
        },
        build=_build(newest) if part.startswith("conda/") else "",
    )


def cell_of(entry: Entry) -> Cell | None:
    """The cell that a file was built for, if torchyard built it."""
    return Cell.from_path(parse(entry.cell).path) if entry.cell else None


def _project(name: str, entry: Entry) -> str:
    """What people look for it as: the project, unless the package is a lesser part of one."""
    cell = cell_of(entry)
    if cell is None or cell.package != "conda":
        return name
    return parse(entry.cell).label.rpartition("-")[0]


def _python_order(python: str) -> tuple[int, str]:
    """`cp39` is older than `cp310`, and `cp313t` comes after `cp313`."""
    digits = re.sub(r"\D", "", python)
    return int(digits[1:] or 0), python


def platforms_of(part: str, entry: Entry) -> list[str]:
    """The platforms that a file is for."""
    return list(dict.fromkeys(fit.platform for fit in fits_of(part, entry)))


def fits_of(part: str, entry: Entry) -> Iterator[Fit]:
    """What a file is for: as its cell says, else as its name does."""
    shelf, _, name = part.partition("/")
    cell = cell_of(entry)
    if cell is not None:
        yield Fit(cell.platform, "" if cell.python == ANY_PYTHON else cell.python)
    elif shelf == "conda":
        python = re.search(r"(?:^|_)py(\d+)(?=h|_|$)", _conda_words(entry.file)[2])
        yield Fit(_subdirs().get(name, ANY_PLATFORM), f"cp{python[1]}" if python else "")
    elif entry.file.endswith(".whl"):
        yield from _wheel_fits(entry.file)
    elif shelf == "libtorch":
        yield Fit(_zip_platform(entry.file))
    else:
        yield Fit(ANY_PLATFORM)


def _conda_words(file: str) -> tuple[str, str, str]:
    """Name, version and build of a conda package, of its file's name."""
    stem = file.removesuffix(".conda").removesuffix(".tar.bz2")
    rest, _, build = stem.rpartition("-")
    name, _, version = rest.rpartition("-")
    return name, version, build


def _build(entry: Entry) -> str:
    """The build strings of a variant: `cpu_mkl_py312_h93a9a1d_100` begins with its words."""
    words: list[str] = []
    for word in _conda_words(entry.file)[2].split("_"):
        if re.match(r"py\d|h[0-9a-f]{7}|\d", word):
            break
        words.append(word)
    wanted = entry.variant.count("-") + 1
    return "_".join([*words[:wanted], "*"]) if entry.variant and len(words) >= wanted else ""


@cache
def _subdirs() -> dict[str, str]:
    return {row.conda_subdir: name for name, row in load_tables().platforms.items()}


@cache
def _systems() -> dict[tuple[str, str], str]:
    """`linux`, `x86_64` → `linux-x86_64`: what a platform tag says, whatever its versions."""
    return {_system(row.wheel_tag): name for name, row in load_tables().platforms.items()}


def _system(tag: str) -> tuple[str, str]:
    match = re.fullmatch(r"(?:many)?(linux|macosx|win)(?:\d*(?:_\d+)*)_(\w+)", tag)
    return (match[1], match[2]) if match else (tag, "")


def _wheel_fits(file: str) -> Iterator[Fit]:
    """What the tags of a wheel's name say. A platform that no table has is called by its tag."""
    tags = file.removesuffix(".whl").rsplit("-", maxsplit=3)[1:]
    if len(tags) != len(("python", "abi", "platform")):
        return
    pythons, abis, platforms = (tag.split(".") for tag in tags)
    for tag in platforms:
        system, machine = _system(tag)
        for part in ("arm64", "x86_64") if machine == "universal2" else (machine,):
            platform = ANY_PLATFORM if tag == "any" else _systems().get((system, part), tag)
            for python in pythons:
                yield from (Fit(platform, name) for name in _tag_pythons(python, abis))


def _tag_pythons(python: str, abis: list[str]) -> list[str]:
    if not python.startswith("cp"):
        return ["" if python.startswith("py") else python]
    if "abi3" not in abis:
        return [abi if abi.startswith(python) else python for abi in abis]
    oldest = _python_order(python)
    rows = load_tables().pythons
    fitting = [name for name, row in rows.items() if not row.free_threaded]
    return [name for name in fitting if _python_order(name) >= oldest]


def _zip_platform(file: str) -> str:
    """The platform that a libtorch zip from elsewhere is for; those for Linux do not say."""
    for platform in load_tables().platforms:
        if platform in file:
            return platform
    if "-win-" in file:
        return "windows-x86_64"
    return "macos-x86_64" if "-macos-" in file else "linux-x86_64"
