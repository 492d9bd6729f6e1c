"""Licence texts of third-party libraries, from the Debian packages or wheels that have them."""

from collections.abc import Iterator
from pathlib import Path

_DPKG = Path("/var/lib/dpkg/info")
_DOCS = Path("/usr/share/doc")
_NAMES = ("LICEN[CS]E*", "License*", "COPYING*", "NOTICE*")

FOLDER = "licenses"
"""The folder of licence texts beside collected libraries, with a folder for each library."""


def licenses_of(library: Path, dpkg: Path = _DPKG, docs: Path = _DOCS) -> list[Path]:
    """Return the licence texts of an installed library; none if nothing known installed it."""
    real = library.resolve()
    found = [docs / name / "copyright" for name in _debian_packages(real, dpkg)]
    return [path for path in (*found, *_of_wheel(real)) if path.is_file()]


def project_licenses(tree: Path) -> list[Path]:
    """Return the licence texts in the top folder of a source tree, or of a wheel's metadata."""
    folders = [tree, tree / FOLDER]
    found = {path for folder in folders for name in _NAMES for path in folder.glob(name)}
    return sorted(path for path in found if path.is_file())


def _debian_packages(library: Path, dpkg: Path) -> Iterator[str]:
    """Yield the packages that list a file, whose folder may be in /usr only since a merge."""
    own = str(library)
    lines = {f"\n{path}\n".encode() for path in (own, own.removeprefix("/usr"))}
    for path in sorted(dpkg.glob("*.list")):
        text = path.read_bytes()
        if any(line in text for line in lines):
            yield path.stem.partition(":")[0]


def _of_wheel(library: Path) -> Iterator[Path]:
    for site in library.parents:
        for record in site.glob("*.dist-info/RECORD"):
            if f"{library.relative_to(site)}," in record.read_text(encoding="utf-8"):
                yield from project_licenses(record.parent)
