"""Ways to break a package, and how to write one again when some of its members have changed."""

import json
import struct
import tarfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_STORED, ZipFile

from tests.mutations.zstd import compress, decompress

from torchyard.model.job_spec import JobSpec
from torchyard.package.wheel.dist_info import record
from torchyard.package.zip.writer import Member, writing

Break = Callable[[Path, Path], Path]
"""Makes of a good package a broken one, in an empty folder."""

Edits = Mapping[str, bytes | None]
"""New contents of members, by their names; None removes one."""

PATHS = "info/paths.json"


class Link(bytes):
    """The target of a link, as the content of a member of a conda package."""


class Mutation(NamedTuple):
    """A way to break a valid package, and the rule that must report it.

    No rule but those that are `also` named may find anything. The packages `beside` are checked
    together with the broken one.
    """

    name: str
    good: str
    rule: str
    make: Break
    also: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    spec: JobSpec | None = None
    """The specification of the job that delivered it."""
    upload: str = ""
    """The package index that it is checked for."""


def members(package: Path) -> dict[str, bytes]:
    """All members of a wheel or zip."""
    with ZipFile(package) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def find(names: Mapping[str, bytes], ending: str) -> str:
    """The one member whose name ends like this."""
    (name,) = (name for name in names if name.endswith(ending))
    return name


def rewritten(package: Path, folder: Path, edits: Edits, name: str = "") -> Path:
    """A wheel or zip with some members changed; a wheel's RECORD is made anew, unless it is one."""
    content = {**members(package), **edits}
    kept = [Member(name, text) for name, text in content.items() if text is not None]
    out = folder / (name or package.name)
    listed = [member for member in kept if not member.name.endswith(".dist-info/RECORD")]
    is_given = any(name.endswith("/RECORD") for name in edits)
    with writing(out) as archive:
        if is_given or not package.name.endswith(".whl"):
            archive.add(kept)
        else:
            own = find(members(package), ".dist-info/RECORD")
            rows = archive.add(listed)
            archive.add([Member(own, record(rows, own).encode())])
    return out


def with_edits(edits: Edits, name: str = "") -> Break:
    """Change members whatever they were."""
    return lambda good, folder: rewritten(good, folder, edits, name)


def replacing(ending: str, old: str, new: str) -> Break:
    """Change a text in the member whose name ends like this."""

    def make(good: Path, folder: Path) -> Path:
        content = members(good)
        name = find(content, ending)
        assert old.encode() in content[name]
        return rewritten(good, folder, {name: content[name].replace(old.encode(), new.encode())})

    return make


def removing(ending: str) -> Break:
    return lambda good, folder: rewritten(good, folder, {find(members(good), ending): None})


def renamed(old: str, new: str) -> Break:
    """The same bytes under another file name."""

    def make(good: Path, folder: Path) -> Path:
        assert old in good.name
        path = folder / good.name.replace(old, new)
        path.write_bytes(good.read_bytes())
        return path

    return make


def in_bytes(change: Callable[[bytearray, ZipFile], bytes | None]) -> Break:
    """Change the bytes of an archive, in place or by returning others."""

    def make(good: Path, folder: Path) -> Path:
        data = bytearray(good.read_bytes())
        with ZipFile(good) as archive:
            changed = change(data, archive)
        path = folder / good.name
        path.write_bytes(data if changed is None else changed)
        return path

    return make


class Places(NamedTuple):
    """Where in an archive a member's header, its data, and its row in the directory begin."""

    header: int
    data: int
    row: int


def places(archive: ZipFile, ending: str) -> Places:
    row = archive.start_dir
    for info in archive.infolist():
        if info.filename.endswith(ending):
            size = 30 + len(info.filename)
            return Places(info.header_offset, info.header_offset + size, row)
        row += 46 + len(info.filename)
    raise KeyError(ending)


def put(data: bytearray, place: int, shape: str, *numbers: int) -> None:
    struct.pack_into(f"<{shape}", data, place, *numbers)


def conda_edited(edits: Edits, name: str = "") -> Break:
    """Write a conda package again; `info/paths.json` follows, unless it is among the edits."""

    def make(good: Path, folder: Path) -> Path:
        path = folder / (name or good.name)
        stems = good.name.removesuffix(".conda"), path.name.removesuffix(".conda")
        parts = {}
        for part, data in members(good).items():
            is_tar = part.endswith(".tar.zst")
            edited = compress(_tar_edited(decompress(data), edits)) if is_tar else data
            parts[part.replace(*stems)] = edited
        return conda_zipped(parts, path)

    return make


def conda_zipped(parts: Mapping[str, bytes], path: Path) -> Path:
    """Write the archive around the parts of a conda package, which compresses nothing."""
    with ZipFile(path, "w", ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def _tar_edited(data: bytes, edits: Edits) -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=BytesIO(data)) as old, tarfile.open(fileobj=out, mode="w") as new:
        is_info = PATHS in old.getnames()
        for info in old.getmembers():
            content = old.extractfile(info).read() if info.isreg() else b""  # type: ignore[union-attr]
            edit = edits.get(info.name, content)
            if edit is None:
                continue
            if info.name == PATHS and PATHS not in edits:
                edit = _listed(content, edits)
            info.size = len(edit)
            new.addfile(info, BytesIO(edit))
        for name in edits.keys() - set(old.getnames()):
            if name.startswith("info/") is is_info and (content := edits[name]) is not None:
                info = tarfile.TarInfo(name)
                if isinstance(content, Link):
                    info.type, info.linkname, content = tarfile.SYMTYPE, content.decode(), b""
                info.size = len(content)
                new.addfile(info, BytesIO(content))
    return out.getvalue()


def _listed(paths: bytes, edits: Edits) -> bytes:
    """The list of files with the digests and sizes of those that are changed."""
    listed = json.loads(paths)
    for row in listed["paths"]:
        if content := edits.get(row["_path"]):
            row.update(sha256=sha256(content).hexdigest(), size_in_bytes=len(content))
    return json.dumps(listed).encode()


def conda_members(package: Path) -> dict[str, bytes]:
    """All files of a conda package."""
    found = {}
    for name, data in members(package).items():
        if name.endswith(".tar.zst"):
            with tarfile.open(fileobj=BytesIO(decompress(data))) as archive:
                for info in archive.getmembers():
                    if content := archive.extractfile(info) if info.isreg() else None:
                        found[info.name] = content.read()
    return found
