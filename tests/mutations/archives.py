"""Broken archives: ambiguous structures, and wrong lists of files."""

import stat
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tests.mutations.mutation import (
    Break,
    Mutation,
    find,
    in_bytes,
    members,
    places,
    put,
    removing,
    replacing,
    rewritten,
    with_edits,
)

DATA = "tinytorch/lib/libtt_cpu.so"
STORED = "sboms/tinytorch.cdx.json"
SIZES = ("record-digest",)


def cut(share: float) -> Break:
    return in_bytes(lambda data, _: bytes(data[: int(len(data) * share)]))


def cut_tail(size: int) -> Break:
    return in_bytes(lambda data, _: bytes(data[:-size]))


def flipped(ending: str) -> Break:
    """Change a bit in the stored bytes of a member."""

    def change(data: bytearray, archive: ZipFile) -> None:
        size = archive.getinfo(find_name(archive, ending)).compress_size
        data[places(archive, ending).data + size // 2] ^= 0x10

    return in_bytes(change)


def find_name(archive: ZipFile, ending: str) -> str:
    (name,) = (name for name in archive.namelist() if name.endswith(ending))
    return name


def patched(shape: str, number: int, *, row: int | None = None, header: int | None = None) -> Break:
    """Write a number into a member's row of the directory, into its own header, or into both."""

    def change(data: bytearray, archive: ZipFile) -> None:
        place = places(archive, DATA)
        if row is not None:
            put(data, place.row + row, shape, number)
        if header is not None:
            put(data, place.header + header, shape, number)

    return in_bytes(change)


def with_crc(data: bytearray, archive: ZipFile) -> None:
    """A wrong CRC, in both places."""
    place = places(archive, DATA)
    put(data, place.row + 16, "I", 0xDEADBEEF)
    put(data, place.header + 14, "I", 0xDEADBEEF)


def with_size(difference: int) -> Break:
    """A wrong size, in both places."""

    def change(data: bytearray, archive: ZipFile) -> None:
        place = places(archive, DATA)
        size = archive.getinfo(DATA).file_size + difference
        put(data, place.row + 24, "I", size)
        put(data, place.header + 22, "I", size)

    return in_bytes(change)


def with_local_name(data: bytearray, archive: ZipFile) -> None:
    start = places(archive, DATA).header + 30
    data[start : start + 9] = b"evilevil!"


def with_second_end(data: bytearray, archive: ZipFile) -> bytes:
    """Another end record in front, in the comment's place of the first one."""
    end = bytes(data[-22:])
    return bytes(data[:-2]) + struct.pack("<H", 22) + end


def with_hidden_directory(data: bytearray, archive: ZipFile) -> bytes:
    """A comment that is an archive of its own."""
    evil = bytes(data[:20]) + bytes(data)
    size = min(len(evil), 0xFFFF)
    return bytes(data[:-2]) + struct.pack("<H", size) + evil[-size:]


def with_bad_extra(data: bytearray, archive: ZipFile) -> bytes:
    """A row that asks for a ZIP64 field, and has none."""
    put(data, places(archive, DATA).row + 24, "I", 0xFFFFFFFF)
    return bytes(data)


def overlapping(data: bytearray, archive: ZipFile) -> None:
    """Two rows of the directory that share a member's bytes."""
    first, second = places(archive, "libtt_cpu.so"), places(archive, "libtt_python.so")
    put(data, second.row + 42, "I", first.header)


def with_descriptor_flag(data: bytearray, archive: ZipFile) -> None:
    """The numbers shall follow the data; what follows is the next member."""
    place = places(archive, DATA)
    put(data, place.row + 8, "H", 8)
    put(data, place.header + 6, "H", 8)


def with_count(data: bytearray, archive: ZipFile) -> None:
    put(data, len(data) - 22 + 8, "HH", 3, 3)


def gap(data: bytearray, archive: ZipFile) -> bytes:
    """Add bytes between the members and the directory that no record covers."""
    start = archive.start_dir
    put(data, len(data) - 22 + 16, "I", start + 8)
    return bytes(data[:start]) + b"MALICE!!" + bytes(data[start:])


def zipped(change: Callable[[list[tuple[ZipInfo, bytes]]], None]) -> Break:
    """Write all members anew by another writer, after a change that ours refuses to make."""

    def make(good: Path, folder: Path) -> Path:
        rows = []
        for name, content in members(good).items():
            info = ZipInfo(name)
            info.compress_type = ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            rows.append((info, content))
        change(rows)
        out = folder / good.name
        with ZipFile(out, "w") as archive:
            for info, content in rows:
                archive.NameToInfo.pop(info.filename, None)  # or it warns of a second one
                archive.writestr(info, content)
        return out

    return make


def twice(rows: list[tuple[ZipInfo, bytes]]) -> None:
    (info, content) = rows[1]
    again = ZipInfo(info.filename)
    rows.append((again, content))


def as_link(rows: list[tuple[ZipInfo, bytes]]) -> None:
    (info, _) = next(row for row in rows if row[0].filename == DATA)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16


def with_link_out(rows: list[tuple[ZipInfo, bytes]]) -> None:
    info = ZipInfo("libtinytorch/lib/libmore.so")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    rows.append((info, b"../../../usr/lib/libmore.so"))


def with_extra(extra: bytes) -> Break:
    """Another extra field of a member."""

    def change(rows: list[tuple[ZipInfo, bytes]]) -> None:
        rows[0][0].extra = extra

    return zipped(change)


def recorded(change: Callable[[list[str]], Sequence[str]]) -> Break:
    """Change the rows of RECORD; the first is that of the extension module."""

    def make(good: Path, folder: Path) -> Path:
        content = members(good)
        own = find(content, "/RECORD")
        rows = change(content[own].decode().splitlines())
        return rewritten(good, folder, {own: "".join(f"{row}\n" for row in rows).encode()})

    return make


def first_size(rows: list[str]) -> list[str]:
    name, digest, size = rows[0].split(",")
    return [f"{name},{digest},{int(size) + 1}", *rows[1:]]


def first_digest(rows: list[str]) -> list[str]:
    name, digest, size = rows[0].split(",")
    other = "sha256=" + digest[7:][::-1].replace("=", "")
    assert other != digest
    return [f"{name},{other[:-1]}A,{size}", *rows[1:]]


def first_weak(rows: list[str]) -> list[str]:
    name, _, size = rows[0].split(",")
    return [f"{name},md5=1B2M2Y8AsgTpgAmY7PhCfg,{size}", *rows[1:]]


def bare(rows: list[str]) -> list[str]:
    return [f"{rows[0].split(',')[0]},,", *rows[1:]]


def _same_case(good: Path, folder: Path) -> Path:
    return rewritten(good, folder, {"tinytorch/Version.py": b""})


def _structure(name: str, make: Break, *also: str, good: str = "wheel") -> Mutation:
    return Mutation(name, good, "archive-structure", make, also)


_BIG = bytes(range(256)) * 8192

ARCHIVES = [
    _structure("cut in the middle", cut(0.5)),
    _structure("cut in the directory", cut(0.95)),
    _structure("cut in the end record", cut_tail(3)),
    _structure("empty file", cut(0)),
    _structure("zip cut in the middle", cut(0.5), good="zip"),
    _structure("stored sizes of header and directory differ", patched("I", 17, header=18)),
    _structure("sizes of header and directory differ", patched("I", 17, header=22)),
    _structure("checksums of header and directory differ", patched("I", 17, header=14)),
    _structure("methods of header and directory differ", patched("H", 0, header=8)),
    _structure("encrypted", patched("H", 1, row=8, header=6)),
    _structure("unknown method", patched("H", 14, row=10, header=8)),
    _structure("on another disk", patched("H", 2, row=34)),
    _structure("bytes in front", in_bytes(lambda data, _: b"#!/bin/sh\n" + bytes(data))),
    _structure("bytes behind", in_bytes(lambda data, _: bytes(data) + b"more")),
    _structure("two end records", in_bytes(with_second_end)),
    _structure("an archive in the comment", in_bytes(with_hidden_directory)),
    _structure("other name in the header", in_bytes(with_local_name)),
    _structure("no ZIP64 field", in_bytes(with_bad_extra), "archive-bomb", *SIZES),
    _structure("members that overlap", in_bytes(overlapping)),
    _structure("descriptor that lies", in_bytes(with_descriptor_flag)),
    _structure("wrong number of members", in_bytes(with_count)),
    _structure("bytes that belong to no member", in_bytes(gap)),
    _structure("second name", with_extra(struct.pack("<HHBI4s", 0x7075, 9, 1, 0, b"evil"))),
    _structure("extra field cut off", with_extra(b"\x99\x00\x10\x00\x01")),
    Mutation("flipped bit, compressed", "wheel", "archive-content", flipped(DATA)),
    Mutation("flipped bit, stored", "wheel", "archive-content", flipped(STORED)),
    Mutation("wrong checksum", "wheel", "archive-content", in_bytes(with_crc)),
    Mutation("less than was said", "wheel", "archive-content", with_size(+1), SIZES),
    Mutation("more than was said", "wheel", "archive-bomb", with_size(-1), SIZES),
    Mutation("bomb", "wheel", "archive-bomb", with_edits({"tinytorch/zeros": bytes(65 << 20)})),
    Mutation("name that leads out", "zip", "archive-names", with_edits({"../evil.py": b""})),
    Mutation("absolute name", "zip", "archive-names", with_edits({"/etc/evil": b""})),
    Mutation("name of a drive", "zip", "archive-names", with_edits({"C:/evil": b""})),
    Mutation("backslash", "zip", "archive-names", with_edits({"libtinytorch\\evil": b""})),
    Mutation("names that differ in case", "wheel", "archive-names", _same_case),
    Mutation("member twice", "wheel", "archive-names", zipped(twice)),
    Mutation("link in a wheel", "wheel", "archive-names", zipped(as_link)),
    Mutation("link that leads out", "zip", "archive-names", zipped(with_link_out)),
    Mutation("control character", "zip", "archive-names", with_edits({"libtinytorch/\n": b""})),
    Mutation("file and folder", "zip", "archive-names", with_edits({"libtinytorch/lib": b""})),
    Mutation("size off by one in RECORD", "wheel", "record-digest", recorded(first_size)),
    Mutation("wrong digest in RECORD", "wheel", "record-digest", recorded(first_digest)),
    Mutation("weak digest in RECORD", "wheel", "record-digest", recorded(first_weak)),
    Mutation("no digest in RECORD", "wheel", "record-digest", recorded(bare)),
    Mutation("no row in RECORD", "wheel", "record-complete", recorded(lambda rows: rows[1:])),
    Mutation(
        "row without a file",
        "wheel",
        "record-complete",
        recorded(lambda rows: ["tinytorch/lost.py,sha256=AAAA,3", *rows]),
    ),
    Mutation("row twice", "wheel", "record-complete", recorded(lambda rows: [rows[0], *rows])),
    Mutation("no RECORD", "wheel", "record-missing", removing("/RECORD")),
    Mutation("broken row", "wheel", "record-missing", recorded(lambda rows: [*rows, "what"])),
    Mutation("a .pth file", "wheel", "pth-file", with_edits({"evil.pth": b"import evil\n"})),
    Mutation("tests at the root", "wheel", "top-level", with_edits({"tests/test.py": b""})),
    Mutation("file at the root", "wheel", "top-level", with_edits({"LICENSE": b""})),
    Mutation(
        "path of the build machine",
        "wheel",
        "leaked-path",
        replacing("Config.cmake", "${ROOT}/include", "/tmp/build/include"),
    ),
    Mutation(
        "path of the build machine in what tells how it was built",
        "wheel",
        "leaked-config",
        with_edits({"tinytorch/__config__.py": b"PYTHON = '/tmp/build-env/bin/python'\n"}),
    ),
    Mutation(
        "path of the build machine in a zip",
        "zip",
        "leaked-path",
        replacing("Config.cmake", "${ROOT}/include", "/home/me/include"),
    ),
    Mutation(
        "large file twice",
        "wheel",
        "duplicate-file",
        with_edits({"tinytorch/bin/protoc": _BIG, "tinytorch/bin/protoc-3.21": _BIG}),
    ),
]
