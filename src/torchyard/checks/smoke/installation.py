"""A package that is installed: where it is, and what it brought."""

import csv
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from torchyard.model.values import Value

_SUFFIX = re.compile(r"\.(py|so|(cpython-[\w-]+|abi3t?)\.so)")
_LIBRARY = re.compile(r"lib[^/]*\.so(\.[\d.]+)?")


class Installer(StrEnum):
    """What installs a package; each kind of package has its own."""

    PIP = "pip"
    UV = "uv"
    CONDA = "conda"
    UNZIP = "unzip"


class Installation(Value, kw_only=True):
    """Where a package is, once it is installed."""

    installer: Installer
    prefix: str
    python: str = ""
    """The environment's interpreter; empty if it has none."""
    version: str = ""
    """Of that Python."""
    include: str = ""
    """Its headers, if they are there."""
    sites: tuple[str, ...] = ()
    """The folders of modules."""
    distribution: str = ""
    """What the package is called among Python's distributions, if it is one of them."""
    modules: tuple[str, ...] = ()
    """What can be imported from the package itself."""
    libraries: tuple[str, ...] = ()
    """The names of its own shared libraries."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Where CMake finds what the package says about itself."""
        folders = [Path(self.prefix)]
        folders += [Path(site, name) for site in self.sites for name in self.modules]
        return tuple(str(folder) for folder in folders if (folder / "share/cmake").is_dir())

    @property
    def is_torch(self) -> bool:
        """Whether it has what the tests for torch try."""
        configured = (Path(root, "share/cmake/Torch/TorchConfig.cmake") for root in self.roots)
        return "torch" in self.modules or any(path.is_file() for path in configured)


def site_of(prefix: Path) -> Path:
    """The folder of an environment's modules."""
    (site,) = prefix.glob("lib/python3*/site-packages")
    return site


def installed_dist_infos(site: Path) -> dict[str, Path]:
    """The distributions of an environment, by their names."""
    found = sorted(site.glob("*.dist-info"))
    return {canonicalize_name(path.name.partition("-")[0]): path for path in found}


def recorded(dist_info: Path) -> list[str]:
    """The files of a distribution, by its own list."""
    with (dist_info / "RECORD").open(encoding="utf-8", newline="") as file:
        return [row[0] for row in csv.reader(file) if row]


def modules_in(files: Iterable[str]) -> tuple[str, ...]:
    """What can be imported, of files named from a folder of modules."""
    return tuple(sorted(set(_modules_in(files))))


def _modules_in(files: Iterable[str]) -> Iterator[str]:
    for name in files:
        top, _, rest = name.partition("/")
        if rest == "__init__.py" and top.isidentifier():
            yield top
        elif not rest:
            stem, dot, suffix = top.partition(".")
            if stem.isidentifier() and _SUFFIX.fullmatch(dot + suffix):
                yield stem


def libraries_in(files: Iterable[str]) -> tuple[str, ...]:
    """The names of the shared libraries among files."""
    names = (PurePosixPath(name).name for name in files)
    return tuple(sorted({name for name in names if _LIBRARY.fullmatch(name)}))
