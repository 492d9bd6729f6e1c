"""An installed package: its location, modules and libraries."""

import csv
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from filecmp import cmp
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from torchyard.checks.table import load_rule_table
from torchyard.host.files import link_or_copy
from torchyard.model.values import Value
from torchyard.smoke.suite import Test

_SUFFIX = re.compile(r"\.(py|so|(cpython-[\w-]+|abi3t?)\.so)")
_PROGRAM = re.compile(r"\.\./\.\./\.\./bin/\w[^/]*")
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
    """The names of the package's shared libraries."""
    tests: tuple[Test, ...] = ()
    """The tests that the package itself has."""

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders with the package's CMake configuration."""
        folders = [Path(self.prefix)]
        names = [name.replace(".", "/") for name in self.modules]
        folders += [Path(site, name) for site in self.sites for name in names]
        return tuple(str(folder) for folder in folders if (folder / "share/cmake").is_dir())

    @property
    def own_modules(self) -> tuple[str, ...]:
        """The package's modules: the one with its name, or all except stray folders."""
        own = canonicalize_name(self.distribution)
        named = tuple(name for name in self.modules if canonicalize_name(name) == own)
        stray = load_rule_table().stray_folders
        return named or tuple(name for name in self.modules if name not in stray) or self.modules

    @property
    def is_torch(self) -> bool:
        """Whether the package has everything for the torch tests."""
        configured = (Path(root, "share/cmake/Torch/TorchConfig.cmake") for root in self.roots)
        return "torch" in self.modules or any(path.is_file() for path in configured)

    @property
    def is_extension(self) -> bool:
        """Whether the package has modules, and torch was installed with it."""
        installed = (Path(site, "torch") for site in self.sites)
        return bool(self.modules) and not self.is_torch and any(map(Path.is_dir, installed))


def site_of(prefix: Path) -> Path:
    """Return the site-packages folder of an environment."""
    (site,) = prefix.glob("lib/python3*/site-packages")
    return site


def installed_dist_infos(site: Path) -> dict[str, Path]:
    """Return an environment's distributions, by name."""
    found = sorted(site.glob("*.dist-info"))
    return {canonicalize_name(path.name.partition("-")[0]): path for path in found}


def recorded(dist_info: Path) -> list[str]:
    """Return the files in a distribution's RECORD."""
    with (dist_info / "RECORD").open(encoding="utf-8", newline="") as file:
        return [row[0] for row in csv.reader(file) if row]


def modules_in(files: Iterable[str]) -> tuple[str, ...]:
    """Return the importable modules among files, given relative to site-packages.

    Packages in a namespace (`name.space`) are only returned if there are none at the top.
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


def link_distribution(site: Path, target: Path, files: Iterable[str]) -> None:
    """Link or copy a distribution's files and their bytecode."""
    folders = set()
    for name in files:
        if name.startswith("/") or {"..", "__pycache__"} & set(name.split("/")):
            continue
        folder = name.rpartition("/")[0]
        if folder not in folders:
            (target / folder).mkdir(parents=True, exist_ok=True)
            folders.add(folder)
        _link_once(f"{site}/{name}", f"{target}/{name}")
    for folder in folders - {""}:
        compiled, copied = site / folder / "__pycache__", target / folder / "__pycache__"
        if compiled.is_dir() and not copied.exists():
            shutil.copytree(compiled, copied, copy_function=link_or_copy)


def _link_once(source: str, path: str) -> None:
    """Link or copy a file that exists, once: several wheels have the same `nvidia/__init__.py`."""
    with suppress(FileNotFoundError):
        if not os.path.lexists(path):
            link_or_copy(source, path)


def share_requirements(made: Installation, folder: Path) -> None:
    """Link a package's requirements and their programs into another environment."""
    (site,), target = map(Path, made.sites), site_of(folder)
    for name, info in installed_dist_infos(site).items():
        if name != made.distribution and name not in installed_dist_infos(target):
            files = recorded(info)
            link_distribution(site, target, files)
            for program in filter(_PROGRAM.fullmatch, files):
                _link_once(f"{site}/{program}", f"{target}/{program}")


def same_files(this: Installation, other: Installation) -> bool:
    """Return whether two installers put the same files of a package into site-packages.

    Programs are ignored: they start with the path of their interpreter.
    """
    sites = [Path(made.sites[0]) for made in (this, other)]
    infos = [installed_dist_infos(site)[this.distribution] for site in sites]
    first, second = ({n for n in recorded(i) if not n.startswith(f"{i.name}/")} for i in infos)
    if first != second or any(name.startswith(("/", "../")) for name in first):
        return False
    return all(cmp(sites[0] / name, sites[1] / name, shallow=False) for name in first)
