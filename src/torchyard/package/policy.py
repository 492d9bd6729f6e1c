"""Rules for rpaths, and for libraries outside of a package: `data/layouts.toml`.

Directories are relative to the library, so they depend on its depth.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath

from msgspec.structs import replace

from torchyard.compute.registry import PLAIN, library_rules, platform_for
from torchyard.compute.table import LibraryRules, WheelRow
from torchyard.config.tables import load_tables
from torchyard.errors import DataError
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match, matches
from torchyard.model.values import Value

_ROOT = PurePosixPath("/prefix/lib/python/site-packages")
"""A name for the install root; its depth matters only for folders above it."""


class LayoutRow(Value, kw_only=True):
    """The folders of a package's own libraries, and whether it may use other wheels.

    Libraries in `renames` would otherwise hide another package's files of the same name.
    """

    libraries: tuple[str, ...]
    wheels: bool = False
    renames: tuple[str, ...] = ()


class ImportedRow(Value, kw_only=True):
    """A wheel that is imported first: its libraries, their folder, and their needs."""

    distribution: str
    folder: str
    libraries: tuple[str, ...]
    needed: tuple[str, ...] = ()


class Layouts(Value, kw_only=True):
    """The whole table."""

    system: tuple[str, ...]
    musl: tuple[str, ...]
    keep_names: tuple[str, ...]
    imported: tuple[ImportedRow, ...]
    preloads: tuple[str, ...]
    openmp: tuple[str, ...]
    opens: dict[str, tuple[str, ...]]
    layout: dict[str, LayoutRow]

    @property
    def compute(self) -> dict[str, LibraryRules]:
        """The rules of all compute platforms."""
        return library_rules()

    @property
    def drivers(self) -> tuple[str, ...]:
        """The libraries of all drivers."""
        return tuple(driver for row in self.compute.values() for driver in row.drivers)

    @property
    def wheels(self) -> tuple[WheelRow, ...]:
        """All wheels with libraries of a compute platform."""
        return tuple(wheel for row in self.compute.values() for wheel in row.wheels)

    def opened_by(self, library: str) -> tuple[str, ...]:
        """Return globs of the libraries that a library opens at run time."""
        opens = self.opens.items()
        return tuple(glob for name, globs in opens if matches(library, name) for glob in globs)


class Policy(Value, kw_only=True):
    """The rules for a package: its layout, its compute platform, its Python package's folder.

    `brought` are globs of the libraries in packages of its conda channel, `imported` of
    those that its process has already loaded.
    """

    layouts: Layouts
    layout: LayoutRow
    compute: LibraryRules
    package: str
    brought: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[PurePosixPath, ...]:
        """The folders of the package's own libraries; vendored ones go to the first."""
        folders = (folder.format(package=self.package) for folder in self.layout.libraries)
        return tuple(PurePosixPath(folder.lstrip("/")) for folder in folders)

    @property
    def force_rpath(self) -> bool:
        """Whether rpaths also apply to indirect dependencies, and before LD_LIBRARY_PATH.

        Conda's Python packages link to libraries of the prefix, which have another `$ORIGIN` there.
        """
        return bool(self.brought) or (bool(self._wheels) and self.compute.force_rpath)

    @property
    def _wheels(self) -> tuple[WheelRow, ...]:
        return self.compute.wheels if self.layout.wheels else ()

    def rpath(self, file: PurePosixPath, rpath: str = "") -> str:
        """Return the rpath of a file, whose path is relative to the install root.

        Packages imported after torch keep entries of their own `rpath` that lead to other packages.
        """
        brought = (PurePosixPath(row.folder) for row in self._wheels)
        folders = (*brought, file.parent, *self.folders)
        entries = [from_origin(folder, file.parent) for folder in folders]
        entries += (entry for entry in rpath.split(":") if self._leads_beside(file, entry))
        return ":".join(dict.fromkeys(entries))

    def _leads_beside(self, file: PurePosixPath, entry: str) -> bool:
        """Return whether an entry leads to another package in the same environment."""
        here, _, path = entry.partition("/")
        top = posixpath.normpath(file.parent / path).partition("/")[0]
        inside = (".", "..", file.parts[0], *map(str, self.folders))
        return here == "$ORIGIN" and bool(self.imported) and top not in inside

    def is_outside(self, library: str) -> bool:
        """Return whether a library may come from the system, the driver, or another package."""
        outside = (*self.layouts.system, *self.compute.drivers, *self.brought, *self.imported)
        if any_match(library, outside):
            return True
        return any(any_match(library, row.libraries) for row in self._wheels)

    def requirements(
        self, libraries: Collection[str], pins: Mapping[str, str], toolkit: str
    ) -> list[str]:
        """Return the wheels with any of these libraries, and of the kernel compiler, on Linux."""
        rows = [row for row in self._wheels if any(any_match(n, row.libraries) for n in libraries)]
        needed = [row.requirement(pins) for row in rows if not row.extra]
        if extras := sorted({row.extra for row in rows if row.extra}):
            needed.append(f"{self.compute.toolkit}[{','.join(extras)}]=={toolkit}.*")
        if self._wheels and self.compute.triton and "triton" in pins:
            needed.append(f"{self.compute.triton}=={pins['triton']}")
        distinct = dict.fromkeys(needed)
        return [f'{requirement}; platform_system == "Linux"' for requirement in distinct]

    def opened_by(self, library: str) -> tuple[str, ...]:
        return self.layouts.opened_by(library)

    def keeps_name(self, library: str) -> bool:
        """Return whether a library keeps its name in every package, so that only one can exist."""
        return any_match(library, self.layouts.keep_names) and not any_match(
            library, self.layout.renames
        )


def from_origin(folder: PurePosixPath, start: PurePosixPath) -> str:
    """Return the rpath entry that leads from one folder to another."""
    relative = posixpath.relpath(_ROOT / folder, _ROOT / start)
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


def policy_for(form: str, compute: str, package: str, brought: tuple[str, ...] = ()) -> Policy:
    """Return the rules for a package; `package` is its Python package's folder, or empty."""
    layouts = load_layouts()
    for row in platform_for(compute).libraries().values():
        if any_match(compute, row.names):
            layout = layouts.layout[form]
            return Policy(
                layouts=layouts, layout=layout, compute=row, package=package, brought=brought
            )
    msg = f"there are no rules for the libraries of packages for `{compute}`"
    raise DataError(msg, hint="add a section [libraries.…] to the table of its compute platform")


def extension_policy(form: str, package: str, brought: Iterable[str] = ()) -> Policy:
    """Return the rules for a package that is compiled against torch, and imported after it.

    It contains neither torch's libraries nor their dependencies, and does not require their wheels.
    Nor does it contain libraries `brought` by its other requirements.
    """
    policy = policy_for(form, PLAIN, package)
    rows = policy.layouts.imported
    return replace(
        policy,
        layout=replace(policy.layout, libraries=("{package}.libs",), wheels=False),
        imported=(*(glob for row in rows for glob in (*row.libraries, *row.needed)), *brought),
    )


@cache
def load_layouts() -> Layouts:
    """Read the table and check it."""
    return parse_layouts(read_data("layouts.toml"))


def parse_layouts(text: str) -> Layouts:
    """Read the text of the table."""
    return parse_table("layouts.toml", text, Layouts, _problems)


def _problems(layouts: Layouts) -> Iterator[str]:
    formats = load_tables().formats
    for name in layouts.layout:
        if name not in formats:
            yield f"is malformed: it has the layout of an unknown format, `{name}`"
    for name in formats:
        if name not in layouts.layout:
            yield f"lacks the layout `{name}`"
    if sorted(layouts.system, key=str.lower) != list(layouts.system):
        yield "has system libraries that are not sorted"
