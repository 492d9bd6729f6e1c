"""Wheels that installers take, and the package index of a policy does not."""

import io
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tests.mutations.mutation import Break, Mutation, find, members, replacing, rewritten

ABOUT = "tinystable-0.3.dist-info"
LONG = "x" * 600


def adding(*lines: str) -> Break:
    """Add fields to METADATA."""
    more = "".join(f"{line}\n" for line in lines)
    return replacing("/METADATA", "Name: tinystable\n", f"Name: tinystable\n{more}")


def with_entry_points(text: bytes) -> Break:
    return lambda good, folder: rewritten(good, folder, {f"{ABOUT}/entry_points.txt": text})


def for_platform(tag: str) -> Break:
    """Write another platform tag into the name and into WHEEL."""

    def make(good: Path, folder: Path) -> Path:
        *_, old = good.stem.split("-")
        content = members(good)
        name = find(content, "/WHEEL")
        wheel = content[name].replace(old.encode(), tag.encode())
        return rewritten(good, folder, {name: wheel}, good.name.replace(old, tag))

    return make


def with_version(version: str) -> Break:
    """Write another version everywhere, as it is spelt."""

    def make(good: Path, folder: Path) -> Path:
        edits: dict[str, bytes | None] = {}
        for name, text in members(good).items():
            if name.startswith(ABOUT):
                edits[name] = None
                new = name.replace("-0.3.", f"-{version}.")
                edits[new] = text.replace(b"Version: 0.3", f"Version: {version}".encode())
        return _recorded(rewritten(good, folder, edits, good.name.replace("0.3", version)))

    return make


def with_capitals(good: Path, folder: Path) -> Path:
    edits: dict[str, bytes | None] = {}
    for name, text in members(good).items():
        if name.startswith(ABOUT):
            edits |= {name: None, name.replace("tinystable-", "TinyStable-"): text}
    name = good.name.replace("tinystable", "TinyStable")
    return _recorded(rewritten(good, folder, edits, name))


def with_odd_folder(good: Path, folder: Path) -> Path:
    edits: dict[str, bytes | None] = {}
    for name, text in members(good).items():
        if name.startswith(ABOUT):
            edits |= {name: None, name.replace("tinystable-", "TinyStable-"): text}
    return _recorded(rewritten(good, folder, edits))


def _recorded(wheel: Path) -> Path:
    """Write RECORD of a wheel whose folder was renamed anew."""
    content = members(wheel)
    own = find(content, ".dist-info/RECORD")
    content.pop(own)
    rows = [f"{name},{_digest(text)},{len(text)}" for name, text in content.items()]
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(ZipInfo(name), text)
        archive.writestr(ZipInfo(own), "\n".join([*rows, f"{own},,", ""]))
    return wheel


def _digest(text: bytes) -> str:
    return f"sha256={urlsafe_b64encode(sha256(text).digest()).rstrip(b'=').decode()}"


def written(change: Callable[[ZipInfo], None], *, streamed: bool = False) -> Break:
    """Write the archive with another writer."""

    def make(good: Path, folder: Path) -> Path:
        out = folder / good.name
        with out.open("wb") as file, ZipFile(_Stream(file) if streamed else file, "w") as archive:
            for name, text in members(good).items():
                info = ZipInfo(name)
                change(info)
                archive.writestr(info, text)
        return out

    return make


class _Stream(io.RawIOBase):
    """A file that can't seek: zipfile writes sizes behind the members then."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        assert isinstance(data, bytes | bytearray | memoryview)
        return self._file.write(data)


def commented(info: ZipInfo) -> None:
    info.comment = b"hello"


def plain(_: ZipInfo) -> None:
    pass


def expanding(good: Path, folder: Path) -> Path:
    zeros = b"\0" * (23 << 20)
    return rewritten(good, folder, {f"tinystable/zeros{n}": zeros + bytes([n]) for n in range(3)})


def _upload(name: str, rule: str, make: Break, *also: str) -> Mutation:
    return Mutation(name, "stable", f"upload-{rule}", make, also, upload="pypi")


UPLOADS = [
    _upload("no manylinux", "platform", for_platform("linux_x86_64")),
    _upload(
        "unknown machine", "platform", for_platform("manylinux_2_28_loongarch64"), "label-platform"
    ),
    _upload("local version", "version", with_version("0.3+cpu")),
    _upload(
        "metadata of the future",
        "metadata",
        replacing("/METADATA", "Metadata-Version: 2.4", "Metadata-Version: 2.6"),
    ),
    _upload("long summary", "metadata", adding(f"Summary: {LONG}")),
    _upload("no e-mail", "metadata", adding("Author-email: me at home")),
    _upload("no page", "metadata", adding("Home-page: here")),
    _upload("no URL", "metadata", adding("Project-URL: Source, file:///etc/passwd")),
    _upload("no label", "metadata", adding("Project-URL: , https://example.org")),
    _upload("long label", "metadata", adding(f"Project-URL: {LONG[:33]}, https://example.org")),
    _upload("private", "metadata", adding("Classifier: Private :: Do Not Upload")),
    _upload("two licences", "metadata", adding("License: MIT")),
    _upload(
        "direct requirement", "requirement", adding("Requires-Dist: x @ https://example.org/x.whl")
    ),
    _upload(
        "requirement of this machine",
        "requirement",
        adding("Requires-Dist: x @ file:///tmp/x.tar.gz"),
    ),
    _upload("capitals", "name", with_capitals),
    _upload("folder with capitals", "name", with_odd_folder),
    _upload(
        "script that is a path",
        "entry-points",
        with_entry_points(b"[console_scripts]\n../x = a:b\n"),
    ),
    _upload("entry points that are none", "entry-points", with_entry_points(b"hello\n")),
    _upload("entry points in Latin", "entry-points", with_entry_points(b"[a]\nx = \xe4\n")),
    _upload("written as a stream", "archive", written(plain, streamed=True)),
    _upload("comment of a member", "archive", written(commented)),
    _upload("expands", "archive", expanding),
]
