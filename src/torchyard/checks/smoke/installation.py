"""An installed package: its location, modules and libraries."""

import csv
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from torchyard.checks.table import load_rule_table
from torchyard.model.values import Value

_SUFFIX = re.compile(r"\.(py|so|(cpython-[\w-]+|abi3t?)\.so)")
_LIBRARY = re.compile(r"lib[^/]*\.so(\.[\d.]+)?")


class Installer(StrEnum):
    """A program that installs packages; each format has its own."""

    PIP = "pip"
    UV = "uv"
    CONDA = "conda"
    UNZIP = "unzip"


class Installation(Value, kw_only=True):
    """The location and contents of an installed package."""

    installer: Installer
    prefix: str
    python: str = ""
    """The environment's interpreter; empty if it has none."""
    version: str = ""
    """The version of that Python."""
    include: str = ""
    """The folder of its headers, if they are installed."""
    sites: tuple[str, ...] = ()
    """The folders of modules (site-packages)."""
    distribution: str = ""
    """The package's name as a Python distribution, if it is one."""
    modules: tuple[str, ...] = ()
    """The importable modules of the package itself."""
    libraries: tuple[str, ...] = ()
    """The names of its own shared libraries."""

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders in which CMake finds the package's configuration."""
        folders = [Path(self.prefix)]
        names = [name.replace(".", "/") for name in self.modules]
        folders += [Path(site, name) for site in self.sites for name in names]
        return tuple(str(folder) for folder in folders if (folder / "share/cmake").is_dir())

    @property
    def own_modules(self) -> tuple[str, ...]:
        """The modules that are the package: the one with its name, or all but stray folders."""
        own = canonicalize_name(self.distribution)
        named = tuple(name for name in self.modules if canonicalize_name(name) == own)
        stray = load_rule_table().stray_folders
        return named or tuple(name for name in self.modules if name not in stray) or self.modules

    @property
    def is_torch(self) -> bool:
        """Whether the package has what the torch tests use."""
        configured = (Path(root, "share/cmake/Torch/TorchConfig.cmake") for root in self.roots)
        return "torch" in self.modules or any(path.is_file() for path in configured)

    @property
    def is_extension(self) -> bool:
        """Whether the package has modules, and a torch that was installed with it."""
        installed = (Path(site, "torch") for site in self.sites)
        return bool(self.modules) and not self.is_torch and any(map(Path.is_dir, installed))


def site_of(prefix: Path) -> Path:
    """Return the site-packages folder of an environment."""
    (site,) = prefix.glob("lib/python3*/site-packages")
    return site


def installed_dist_infos(site: Path) -> dict[str, Path]:
    """Return the distributions of an environment, by name."""
    found = sorted(site.glob("*.dist-info"))
    return {canonicalize_name(path.name.partition("-")[0]): path for path in found}


def recorded(dist_info: Path) -> list[str]:
    """Return the files of a distribution, by its RECORD."""
    with (dist_info / "RECORD").open(encoding="utf-8", newline="") as file:
        return [row[0] for row in csv.reader(file) if row]


def modules_in(files: Iterable[str]) -> tuple[str, ...]:
    """Return the importable modules among files, which are named relative to site-packages.

    Only if there are none at the top are packages in a namespace returned, as `name.space`.
    """
    paths = list(map(PurePosixPath, files))
    packages = {path.parent for path in paths if path.name == "__init__.py"} - {PurePosixPath()}
    outer = [path.parts for path in packages if packages.isdisjoint(path.parents)]
    named = {".".join(parts) for parts in outer if all(map(str.isidentifier, parts))}
    single = set(_single_modules(path.name for path in paths if len(path.parts) == 1))
    at_top = single | {name for name in named if "." not in name}
    return tuple(sorted(at_top or named))


def _single_modules(files: Iterable[str]) -> Iterator[str]:
    for name in files:
        stem, dot, suffix = name.partition(".")
        if stem.isidentifier() and _SUFFIX.fullmatch(dot + suffix):
            yield stem


def libraries_in(files: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the shared libraries among files."""
    names = (PurePosixPath(name).name for name in files)
    return tuple(sorted({name for name in names if _LIBRARY.fullmatch(name)}))
