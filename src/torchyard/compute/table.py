"""The table of a compute platform, `data/compute/NAME.toml`: its versions and its libraries.

It has a section for each value of the dimension `compute`; sections `[libraries.…]`, the wheels
with its libraries, and the libraries of its driver; sections `[builds.…]`, how to build PyTorch's
tree for it; and a section `[machine]`, what to inspect on a machine.
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
    """A value of the dimension `compute`, and its platforms.

    If it has device code, its platforms are those with a list in `archs`, else `platforms`. If it
    is not `pinned`, every torch release has it without a row.
    """

    version: str = ""
    pinned: bool = True
    platforms: tuple[str, ...] = ()
    archs: dict[str, tuple[str, ...]] = {}

    @property
    def compilers(self) -> dict[str, str]:
        """The newest host compilers that its toolkit accepts, by kind; empty for any."""
        return {}


class WheelRow(Value, kw_only=True):
    """A wheel that contains libraries, and their folder in site-packages.

    Its version is a `pin` of the torch release, or that of the toolkit, whose
    metapackage has an `extra` for it.
    """

    distribution: str
    pin: str = ""
    extra: str = ""
    folder: str
    libraries: tuple[str, ...]

    def requirement(self, pins: Mapping[str, str]) -> str:
        """Return the requirement for a package that needs one of the libraries.

        `pins` are versions of libraries, and of wheels, which take precedence.
        """
        version = pins.get(self.distribution) or pins.get(self.pin)
        return f"{self.distribution}=={version}" if version else self.distribution


class LibraryRules(Value, kw_only=True):
    """Where packages for some computes find libraries: in other wheels, or with the driver.

    `names` are globs over computes, `toolkit` is the vendor's metapackage. With `force_rpath` the
    directories precede those of LD_LIBRARY_PATH.
    """

    names: tuple[str, ...]
    force_rpath: bool = False
    triton: str = ""
    toolkit: str = ""
    drivers: tuple[str, ...] = ()
    wheels: tuple[WheelRow, ...] = ()


class BuildRules(Value, kw_only=True):
    """How to build PyTorch's tree for the computes that match the globs `names`.

    `translate` is a script to run before CMake, if the tree has it. In `env`,
    `{root}` and `{llvm}` are folders of the toolkit, and `{gcc}` is the host compiler's own.
    """

    names: tuple[str, ...]
    translate: str = ""
    env: dict[str, str] = {}


class FeatureFiles(Value, kw_only=True):
    """A library for an optional part of torch, by the files to find it.

    `macros` of the header have its version. CMake turns `switch` off without it; without a switch,
    it is always needed. It may be in a wheel whose name starts with `wheel`. If it is `bundled`,
    the tree has a copy, which is used unless the switch `system` is on.
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


class DebianPackages(Value, kw_only=True):
    """The packages with a toolkit and its libraries, and the components that they are in.

    Those that stand `alone` are installed without their dependencies.
    """

    components: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


class MachineRules(Value, kw_only=True):
    """What to inspect on a machine: libraries, errors of the driver, conflicting headers.

    `translated` is a glob for files that the tree's own script writes. `packages` are the toolkit's
    names in package managers, and `debian` is what a root of Debian gets. Builds find the toolkit
    by `roots`, globs below the system's root, and by `programs` on PATH.
    """

    features: dict[str, FeatureFiles] = {}
    statuses: dict[str, str] = {}
    headers: tuple[str, ...] = ()
    translated: str = ""
    packages: dict[str, str] = {}
    debian: DebianPackages = DebianPackages()
    roots: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def toolkit_paths(self, root: str = "") -> list[str]:
        """Return the paths of toolkits, and of links to them, in the system of a root."""
        top = root or "/"  # without pathlib, which is slow to import
        found = (glob(pattern, root_dir=top) for pattern in self.roots)  # noqa: PTH207
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
        """Return how to build the tree for a compute."""
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
                yield f"names no libraries of {wheel.distribution}, or all of them by `*`"
            if wheel.extra and not rules.toolkit:
                yield f"has an extra for {wheel.distribution}, but no `toolkit` with extras"


def bad_toolkit(compute: str, expected: str, row: ComputeRow, arch: str) -> Iterator[str]:
    """Yield the problems of a toolkit's row: its name, or its lists of architectures.

    `arch` is a regular expression for an architecture.
    """
    if compute != expected:
        yield f"{compute} has the version of {expected}"
    if not row.archs:
        yield f"{compute} has no architectures, so it has no platforms"
    for platform, archs in row.archs.items():
        if not archs or len(set(archs)) != len(archs):
            yield f"{compute} on {platform} has no architectures, or one of them twice"
        for bad in (text for text in archs if not re.fullmatch(arch, text)):
            yield f"{compute} on {platform} has `{bad}`, which is not an architecture"
