"""Writing the zip for C++: the core with all that it needs, without Python."""

from pathlib import Path

from torchyard.package.versions import parse_version
from torchyard.package.zip.writer import Member, members_of, writing

NAME = "zip"


def write_libtorch(  # noqa: PLR0913 - what a zip says of itself
    image: Path, out: Path, *, name: str, version: str, git_hash: str, order: Path, number: int = 0
) -> Path:
    """Write a zip of a directory with lib, include, share and bin into the directory `out`.

    All of it is below one folder, `libtorch` for torch, which says what it was built from.
    """
    top = f"lib{name}/"
    members = members_of(image, top)
    members.append(Member(f"{top}build-version", f"{version}\n".encode()))
    members.append(Member(f"{top}build-hash", f"{git_hash}\n".encode()))
    members.append(Member(top + order.name, order.read_bytes()))
    path = out / libtorch_name(name, version, number)
    with writing(path) as archive:
        archive.add(sorted(members, key=lambda member: member.name))
    return path


def libtorch_name(name: str, version: str, number: int = 0) -> str:
    """Return the name of the zip for C++: `libtorch-shared-with-deps-2.13.0+cu130.zip`.

    A build number that is not 0 comes last, after a `-`.
    """
    build = f"-{number}" if number else ""
    return f"lib{name}-shared-with-deps-{parse_version(version)}{build}.zip"
