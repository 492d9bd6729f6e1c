"""The table of a compute platform, `data/compute/NAME.toml`: its versions and its libraries.

A section for each value of the dimension `compute`, then sections `[libraries.…]`: the wheels that
contain its libraries, and the libraries of its driver; sections `[builds.…]`: how PyTorch's tree is
built for it; and a section `[machine]`: what a machine is inspected for.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from glob import glob
from typing import Generic, NamedTuple, TypeVar

import msgspec

from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.values import Value


class ComputeRow(Value, kw_only=True):
    """One value of the dimension `compute`, and what it is built for.

    It is built for the platforms that `archs` has a list for, if it has device code, else for
    `platforms`. If it is not `pinned`, it needs no row in a torch release: every release has it.
    """

    version: str = ""
    pinned: bool = True
    platforms: tuple[str, ...] = ()
    archs: dict[str, tuple[str, ...]] = {}

    @property
    def compilers(self) -> dict[str, str]:
        """The newest host compilers that its toolkit takes, by kind; none if it takes any."""
        return {}


class WheelRow(Value, kw_only=True):
    """A wheel that contains libraries, and their folder in site-packages.

    Its version is that of a `pin` of the torch release, or follows from the toolkit's, whose
    metapackage has an `extra` for it.
    """

    distribution: str
    pin: str = ""
    extra: str = ""
    folder: str
    libraries: tuple[str, ...]

    def requirement(self, pins: Mapping[str, str], metapackage: str, toolkit: str) -> str:
        """Return the requirement of a package that needs one of the libraries."""
        if self.extra:
            return f"{metapackage}[{self.extra}]=={toolkit}.*"
        return f"{self.distribution}=={pins[self.pin]}" if self.pin in pins else self.distribution


class LibraryRules(Value, kw_only=True):
    """Where packages for some computes find libraries: in other wheels, or with the driver.

    `names` are globs over computes, `toolkit` is the vendor's metapackage. With `force_rpath` the
    directories go before those of LD_LIBRARY_PATH.
    """

    names: tuple[str, ...]
    force_rpath: bool = False
    triton: str = ""
    toolkit: str = ""
    drivers: tuple[str, ...] = ()
    wheels: tuple[WheelRow, ...] = ()


class BuildRules(Value, kw_only=True):
    """How PyTorch's tree is built for some computes, whose globs are `names`.

    `translate` is a script of the tree that is run before CMake, if the tree has it. In `env`,
    `{root}` and `{llvm}` are folders of the toolkit, and `{gcc}` is the host compiler's own.
    """

    names: tuple[str, ...]
    translate: str = ""
    env: dict[str, str] = {}


class FeatureFiles(Value, kw_only=True):
    """A library that makes a part of torch possible, by the files in which it is found.

    `macros` of the header have its version, and CMake turns `switch` off without it; one without a
    switch is always needed. It may be in a wheel whose name begins with `wheel`. If it is
    `bundled`, the tree has a copy, which is used unless the switch `system` is on.
    """

    title: str
    switch: str = ""
    headers: tuple[str, ...]
    macros: tuple[str, ...] = ()
    libraries: tuple[str, ...]
    homes: tuple[str, ...] = ()
    wheel: str = ""
    bundled: bool = False
    system: str = ""
    cure: str = ""


class MachineRules(Value, kw_only=True):
    """What a machine is inspected for: libraries, errors of the driver, headers of several owners.

    `translated` is a glob for files that the tree's own script writes; `packages` are what managers
    of packages call the toolkit. Builds find it by `places`, globs below the system's root, and by
    `programs` on PATH.
    """

    features: dict[str, FeatureFiles] = {}
    statuses: dict[str, str] = {}
    headers: tuple[str, ...] = ()
    translated: str = ""
    packages: dict[str, str] = {}
    places: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def toolkit_paths(self, root: str = "") -> list[str]:
        """Return where toolkits and links to these are in the system of a root."""
        top = root or "/"  # without pathlib, which is slow to import
        found = (glob(pattern, root_dir=top) for pattern in self.places)  # noqa: PTH207
        return sorted(f"/{path}" for paths in found for path in paths)


Row_co = TypeVar("Row_co", bound=ComputeRow, covariant=True)


class ComputeTable(NamedTuple, Generic[Row_co]):
    """A whole table, and its origin as named in plans."""

    rows: Mapping[str, Row_co]
    libraries: Mapping[str, LibraryRules]
    source: str
    builds: Mapping[str, BuildRules] = {}
    machine: MachineRules = MachineRules()

    def build_of(self, compute: str) -> BuildRules:
        """Return how the tree is built for a compute."""
        found = (rules for rules in self.builds.values() if any_match(compute, rules.names))
        return next(found, BuildRules(names=()))


def load_compute_table(name: str, kind: type[Row_co]) -> ComputeTable[Row_co]:
    """Return the table of a built-in compute platform."""
    source = f"data/compute/{name}.toml"
    return parse_compute_table(read_data(f"compute/{name}.toml"), kind, source)


def parse_compute_table(text: str, kind: type[Row_co], source: str) -> ComputeTable[Row_co]:
    """Parse a table, and fail with the first of its problems."""
    try:
        raw = tomllib.loads(text)
        libraries = msgspec.convert(raw.pop("libraries", {}), dict[str, LibraryRules])
        builds = msgspec.convert(raw.pop("builds", {}), dict[str, BuildRules])
        machine = msgspec.convert(raw.pop("machine", {}), MachineRules)
        rows = msgspec.convert(raw, dict[str, kind])  # type: ignore[valid-type]
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        msg = f"the table {source} is malformed: {error}"
        raise DataError(msg) from error
    for problem in _bad_libraries(libraries):
        msg = f"the table {source} {problem}"
        raise DataError(msg)
    return ComputeTable(rows, libraries, source, builds, machine)


def _bad_libraries(libraries: Mapping[str, LibraryRules]) -> Iterator[str]:
    for name, rules in libraries.items():
        for wheel in rules.wheels:
            if wheel.folder.startswith("/") or ".." in wheel.folder:
                yield f"has a folder outside of site-packages for {name}: {wheel.folder}"
            if not wheel.libraries or any_match("libc.so.6", wheel.libraries):
                yield f"names no libraries of {wheel.distribution}, or all there are"
            if wheel.extra and not rules.toolkit:
                yield f"has an extra for {wheel.distribution}, and no `toolkit` that has extras"


def bad_toolkit(compute: str, expected: str, row: ComputeRow, arch: str) -> Iterator[str]:
    """Yield what is wrong with a row of a toolkit: its name, or its lists of architectures.

    `arch` is a regular expression for an architecture.
    """
    if compute != expected:
        yield f"{compute} has the version of {expected}"
    if not row.archs:
        yield f"{compute} has no architectures, so it is made for no platform"
    for platform, archs in row.archs.items():
        if not archs or len(set(archs)) != len(archs):
            yield f"{compute} on {platform} has no architectures, or one of them twice"
        for bad in (one for one in archs if not re.fullmatch(arch, one)):
            yield f"{compute} on {platform} has `{bad}`, which is not an architecture"
