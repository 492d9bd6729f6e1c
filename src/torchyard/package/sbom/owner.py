"""Where an installed file is from: a Debian package or a wheel, with its licence."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path
from typing import NamedTuple

from torchyard.package.sbom.license_text import license_of_texts
from torchyard.package.sbom.purl import purl, pypi_purl

_NAMES = ("LICEN[CS]E*", "License*", "COPYING*", "NOTICE*")
LICENSES = "licenses"
"""The folder of licence texts in a wheel's metadata, or beside collected libraries."""

_OF_ALL_FILES = re.compile(r"^Files: *\*\n(?:(?!\n).*\n)*?License: *(.+)$", re.MULTILINE)
_DISTRIBUTION = re.compile(r"^ID=\"?([\w.-]+)", re.MULTILINE)


class OwningPackage(NamedTuple):
    """What installed a file: its package, and the texts of its licence."""

    version: str
    license: str
    purl: str
    texts: tuple[Path, ...]


def owner_of(file: Path, system: Path = Path("/")) -> OwningPackage | None:
    """Return what installed a file of a system, or None if nothing known did."""
    real = file.resolve()
    for name in _debian_packages(real, system):
        return _of_debian(name, system)
    for info in _dist_infos(real):
        found, texts = Distribution.at(info), tuple(project_licenses(info))
        fields = found.metadata
        stated, named = (
            "".join(fields.get_all(key) or ()) for key in ("License-Expression", "License")
        )
        license_ = stated or license_of_texts(texts) or named.partition("\n")[0]
        return OwningPackage(found.version, license_, pypi_purl(found.name, found.version), texts)
    return None


def project_licenses(tree: Path) -> list[Path]:
    """Return the licence texts in the top folder of a source tree, or of a wheel's metadata."""
    folders = [tree, tree / LICENSES]
    found = {path for folder in folders for name in _NAMES for path in folder.glob(name)}
    return sorted(path for path in found if path.is_file())


def _debian_packages(file: Path, system: Path) -> Iterator[str]:
    """Yield the packages that list a file, whose folder may be in /usr only since a merge."""
    own = f"/{file.relative_to(system)}" if file.is_relative_to(system) else str(file)
    lines = {f"\n{path}\n".encode() for path in (own, own.removeprefix("/usr"))}
    for name, text in _file_lists(system):
        if any(line in text for line in lines):
            yield name


@cache
def _file_lists(system: Path) -> list[tuple[str, bytes]]:
    """Return the names of installed packages, each with its list of files; read once."""
    paths = sorted((system / "var/lib/dpkg/info").glob("*.list"))
    return [(path.stem, path.read_bytes()) for path in paths]


def _of_debian(package: str, system: Path) -> OwningPackage:
    """Return a package by its name, which ends in `:amd64` if it can be there for several."""
    name, _, arch = package.partition(":")
    text = system / "usr/share/doc" / name / "copyright"
    texts = (text,) if text.is_file() else ()
    stated = _OF_ALL_FILES.search(text.read_text("utf-8", "replace")) if texts else None
    version = _debian_version(name, arch, system)
    about = _read(system / "etc/os-release")
    distribution = found[1] if (found := _DISTRIBUTION.search(about)) else "debian"
    named = purl("deb", f"{distribution}/{name}", version, arch=arch)
    license_ = stated[1].strip() if stated else license_of_texts(texts)
    return OwningPackage(version, license_, named, texts)


def _debian_version(name: str, arch: str, system: Path) -> str:
    for part in _read(system / "var/lib/dpkg/status").split("\n\n"):
        is_arch = not arch or f"\nArchitecture: {arch}\n" in part
        if is_arch and part.startswith(f"Package: {name}\n"):
            return part.partition("\nVersion: ")[2].partition("\n")[0]
    return ""


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _dist_infos(file: Path) -> Iterator[Path]:
    """Yield the metadata folder of the wheel that a file is from."""
    for site in file.parents:
        for record in site.glob("*.dist-info/RECORD"):
            if f"{file.relative_to(site)}," in record.read_text(encoding="utf-8"):
                yield record.parent
