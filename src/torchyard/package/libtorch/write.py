"""Write the zip for C++: the core with its dependencies, without Python."""

from pathlib import Path
from typing import NamedTuple

from torchyard.config.tables import load_tables
from torchyard.package.sbom.component import SBOM_FILE
from torchyard.package.versions import parse_version
from torchyard.package.zip.writer import Member, members_of, writing

NAME = "zip"


_WITH_DEPS = "shared-with-deps"
_WITHOUT_DEPS = "-without-deps"
_KIND = "libtorch"
"""The kind of package in `data/packages.toml` whose zip has its dependencies."""


class ZipLabel(NamedTuple):
    """The parts of a zip's name: project, version, platform, kind, and build number."""

    name: str
    version: str
    platform: str
    kind: str = _KIND
    number: int = 0

    @property
    def has_deps(self) -> bool:
        """Whether the zip has its third-party libraries."""
        return not self.kind.endswith(_WITHOUT_DEPS)

    @property
    def file_name(self) -> str:
        """The name of the zip for C++: `libtorch-shared-with-deps-2.13.0+cu130.zip`.

        A build number other than 0 follows after a `-`.
        """
        system = load_tables().platforms[self.platform].zip
        kind = self.kind.removeprefix(f"{_KIND}-") if self.kind != _KIND else _WITH_DEPS
        build = str(self.number or "")
        words = (f"lib{self.name}", system, kind, str(parse_version(self.version)), build)
        return f"{'-'.join(filter(None, words))}.zip"


def lacks_deps(file_name: str) -> bool:
    """Return whether a zip lacks its third-party libraries, by its name."""
    return f"{_WITHOUT_DEPS}-" in file_name


def write_libtorch(  # noqa: PLR0913 - what is written beside the libraries
    image: Path, out: Path, label: ZipLabel, *, git_hash: str, spec: Path, sbom: bytes = b""
) -> Path:
    """Write a zip of a directory with lib, include, share and bin into the directory `out`.

    Everything is below one folder, `libtorch` for torch, which also names the source.
    """
    top = f"lib{label.name}/"
    members = members_of(image, top)
    members.append(Member(f"{top}build-version", f"{label.version}\n".encode()))
    members.append(Member(f"{top}build-hash", f"{git_hash}\n".encode()))
    members.append(Member(top + spec.name, spec.read_bytes()))
    members += [Member(top + SBOM_FILE, sbom)] if sbom else []
    path = out / label.file_name
    with writing(path) as archive:
        archive.add(sorted(members, key=lambda member: member.name))
    return path
