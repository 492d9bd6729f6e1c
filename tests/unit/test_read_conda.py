"""Conda packages of both kinds, and the tar archives in them."""

import bz2
import io
import random
import tarfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.made_elf import Made, make_elf
from tests.support.made_zip import Made as Member
from tests.support.made_zip import make_zip

from torchyard.host.zstd import compress
from torchyard.package.contents import Contents, FaultKind, PackageFile
from torchyard.package.limits import Limits
from torchyard.package.read import read_package
from torchyard.package.tar_reader import Stream, TarError, tar_members

LIBRARY = make_elf(Made(soname="libx.so", filler=random.Random(1).randbytes(300_000)))  # noqa: S311
STEM = "x-1.0-h1_0"


def tar_of(
    files: dict[str, bytes],
    links: Sequence[tuple[str, str, bytes]] = (),
    format: int = tarfile.PAX_FORMAT,  # noqa: A002 - as tarfile has it
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(info, io.BytesIO(content))
        for name, target, kind in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    return out.getvalue()


INFO = {"info/index.json": b"{}", "info/paths.json": b'{"paths": []}'}
FILES = {"lib/libx.so": LIBRARY, "bin/tool": b"#!/bin/sh\n", "share/x/T.cmake": b"set(X 1)"}
LINKS = [("lib/libx.so.1", "libx.so", tarfile.SYMTYPE), ("bin/same", "bin/tool", tarfile.LNKTYPE)]


def conda_of(info: bytes, package: bytes, more: Sequence[Member] = ()) -> bytes:
    members = [
        Member(name=b"metadata.json", content=b"{}", method=0),
        Member(name=f"pkg-{STEM}.tar.zst".encode(), content=compress(package), method=0),
        Member(name=f"info-{STEM}.tar.zst".encode(), content=compress(info), method=0),
        *more,
    ]
    return make_zip(members)


def contents_of(
    data: bytes, folder: Path, ending: str = ".conda", limits: Limits | None = None
) -> Contents:
    path = folder / f"{STEM}{ending}"
    path.write_bytes(data)
    return read_package(path, limits=limits or Limits())


GOOD = conda_of(tar_of(INFO), tar_of(FILES, LINKS))
OLD = bz2.compress(tar_of(INFO | FILES, LINKS))


@pytest.mark.parametrize(("data", "ending"), [(GOOD, ".conda"), (OLD, ".tar.bz2")])
def test_a_good_package(tmp_path: Path, data: bytes, ending: str) -> None:
    contents = contents_of(data, tmp_path, ending)
    assert contents.faults == ()
    assert contents.format == "conda"
    assert set(contents.files) == {*INFO, *FILES, "lib/libx.so.1", "bin/same"}
    for name, content in (INFO | FILES).items():
        file = contents.files[name]
        assert (file.size, file.stored) == (len(content), 0)
        assert file.digest == sha256(content).hexdigest()
    binary = contents.files["lib/libx.so"].binary
    assert binary is not None
    assert binary.soname == "libx.so"
    assert contents.files["lib/libx.so.1"] == PackageFile(
        name="lib/libx.so.1", size=0, link="libx.so"
    )
    assert contents.files["bin/tool"].executable
    assert contents.files["bin/same"].digest == contents.files["bin/tool"].digest
    assert set(contents.texts) == {*INFO, "share/x/T.cmake"}


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("name", ["a/" * 60 + "b", "ä/ö"])
def test_long_and_strange_names(tmp_path: Path, name: str, format: int) -> None:  # noqa: A002
    contents = contents_of(conda_of(tar_of(INFO), tar_of({name: b"x"}, format=format)), tmp_path)
    assert contents.faults == ()
    assert contents.files[name].size == 1


def test_a_name_too_long_for_any_old_header(tmp_path: Path) -> None:
    name = "long" * 70
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        links = [("link", name, tarfile.SYMTYPE)]
        tar = tar_of({name: b"x"}, links, format=kind)
        contents = contents_of(conda_of(tar_of(INFO), tar), tmp_path)
        assert contents.faults == ()
        assert contents.files["link"].link == name
        assert contents.files[name].size == 1


def test_names_in_the_middle_of_a_library_take_a_second_pass(tmp_path: Path) -> None:
    made = Made(soname="liby.so", filler=bytes(10 << 20), names_last=True, sections=False)
    library = make_elf(made) + bytes(10 << 20)
    contents = contents_of(conda_of(tar_of(INFO), tar_of({"a": b"1", "y.so": library})), tmp_path)
    assert contents.faults == ()
    binary = contents.files["y.so"].binary
    assert binary is not None
    assert binary.soname == "liby.so"


@pytest.mark.parametrize("cut", [1, 3, 60])
def test_a_library_whose_first_bytes_come_alone_is_one(tmp_path: Path, cut: int) -> None:
    tar = tar_of({"libx.so": LIBRARY}, format=tarfile.GNU_FORMAT)
    streams = bz2.compress(tar[: 512 + cut]) + bz2.compress(tar[512 + cut :])
    binary = contents_of(streams, tmp_path, ".tar.bz2").files["libx.so"].binary
    assert binary is not None
    assert binary.soname == "libx.so"


@pytest.mark.parametrize("name", [".", "./", "./lib", "lib/", "lib"])
def test_directories_may_be_listed_in_any_way(tmp_path: Path, name: str) -> None:
    tar = bytearray(tar_of({}, [(name, "", tarfile.DIRTYPE)], tarfile.GNU_FORMAT)[:512])
    tar[:100] = name.encode().ljust(100, b"\0")  # tarfile adds a slash
    tar[148:156] = b"%06o\0 " % sum(tar[:148] + b" " * 8 + tar[156:])
    tar += tar_of({"./lib/a": b"1"})
    contents = contents_of(bz2.compress(tar), tmp_path, ".tar.bz2")
    assert contents.faults == ()
    assert list(contents.files) == ["lib/a"]


@pytest.mark.parametrize("key", ["comment", "path", "size", "linkpath"])
def test_a_header_for_all_members_may_be_a_comment_only(tmp_path: Path, key: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", pax_headers={key: "1"}) as archive:
        archive.addfile(tarfile.TarInfo("a"))
    faults = contents_of(bz2.compress(out.getvalue()), tmp_path, ".tar.bz2").faults
    told = [fault.what for fault in faults]
    assert told == (
        [] if key == "comment" else [f"is damaged: a POSIX header sets one {key} for all members"]
    )


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


S, N, X, C = FaultKind.STRUCTURE, FaultKind.NAME, FaultKind.BOMB, FaultKind.CONTENT
TAR = tar_of({"a": b"text", "b": b"more"})


@pytest.mark.parametrize(
    ("data", "kind", "what"),
    [
        pytest.param(make_zip([]), S, "is missing", id="nothing in it"),
        pytest.param(conda_of(TAR, TAR, [Member()]), S, "not belong in a conda package", id="more"),
        pytest.param(
            make_zip([Member(name=b"metadata.json")]), S, "compressed again", id="compressed"
        ),
        pytest.param(conda_of(TAR, TAR[:700]), S, "cut off", id="cut off"),
        pytest.param(conda_of(TAR, flipped(TAR, 3)), S, "header at 0 is damaged", id="header"),
        pytest.param(conda_of(TAR, TAR + b"more"), S, "data follows its end", id="after the end"),
        pytest.param(
            conda_of(TAR, tar_of({}, [("p", "", tarfile.FIFOTYPE)])),
            S,
            "neither a file nor",
            id="pipe",
        ),
        pytest.param(
            conda_of(TAR, tar_of({}, [("h", "gone", tarfile.LNKTYPE)])),
            S,
            "which is missing",
            id="same",
        ),
        pytest.param(
            conda_of(TAR, tar_of({}, [("l", "../x", tarfile.SYMTYPE)])), N, "outside of", id="link"
        ),
        pytest.param(
            conda_of(TAR, tar_of({}, [("l", "/etc", tarfile.SYMTYPE)])),
            N,
            "outside of",
            id="absolute link",
        ),
        pytest.param(conda_of(tar_of({}), tar_of({"../a": b""})), N, "leads out", id="name"),
        pytest.param(conda_of(tar_of({}), TAR[:1024] + TAR), N, "is there twice", id="twice"),
        pytest.param(conda_of(TAR, TAR), N, "is there twice", id="in both"),
        pytest.param(
            conda_of(TAR, b"").replace(compress(b""), bytes(9)),
            C,
            "does not match its checksum",
            id="crc",
        ),
        pytest.param(
            flipped(GOOD, GOOD.index(b"\x28\xb5\x2f\xfd")), S, "is damaged", id="not zstd"
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, data: bytes, kind: FaultKind, what: str) -> None:
    faults = contents_of(data, tmp_path).faults
    assert [fault for fault in faults if fault.kind is kind and what in fault.what], faults


@pytest.mark.parametrize(("ending", "pack"), [(".conda", None), (".tar.bz2", bz2.compress)])
def test_bombs_are_left_early(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes] | None
) -> None:
    tar = tar_of({"a": bytes(1 << 20), "b": bytes(1 << 20)})
    data = pack(tar) if pack else conda_of(tar_of(INFO), tar)
    contents = contents_of(data, tmp_path, ending, Limits(harmless=1 << 20, ratio=2))
    assert [fault.kind for fault in contents.faults] == [FaultKind.BOMB]
    assert "b" not in contents.files


def test_libraries_can_not_be_read_again_forever(tmp_path: Path) -> None:
    made = Made(soname="liby.so", filler=bytes(10 << 20), names_last=True, sections=False)
    library = make_elf(made) + bytes(10 << 20)
    data = conda_of(tar_of(INFO), tar_of({f"{number}.so": library for number in range(4)}))
    few, many = (Limits(total=total << 20, harmless=1 << 30) for total in (150, 1000))
    faults = contents_of(data, tmp_path, limits=few).faults
    assert [fault.kind for fault in faults] == [FaultKind.BOMB]
    assert "unpacked bytes for all passes" in faults[0].what
    assert contents_of(data, tmp_path, limits=many).faults == ()


def test_more_members_than_any_package_has(tmp_path: Path) -> None:
    contents = contents_of(OLD, tmp_path, ".tar.bz2", Limits(members=2))
    assert [fault.kind for fault in contents.faults] == [FaultKind.BOMB]
    assert set(contents.files) == set(INFO)


def test_progress_is_told(tmp_path: Path) -> None:
    for data, ending in ((GOOD, ".conda"), (OLD, ".tar.bz2")):
        path = tmp_path / f"{STEM}{ending}"
        path.write_bytes(data)
        told: list[int] = []
        read_package(path, progress=told.append)
        assert 0.9 * len(data) < sum(told) <= len(data)


@pytest.mark.parametrize("data", [b"", b"BZh9 and then nothing of that kind", OLD[:-20], OLD[:90]])
def test_damaged_old_packages(tmp_path: Path, data: bytes) -> None:
    faults = contents_of(data, tmp_path, ".tar.bz2").faults
    assert [fault.kind for fault in faults] == [FaultKind.STRUCTURE]


@given(
    st.lists(st.tuples(st.integers(0, 6000), st.binary(min_size=1, max_size=20)), max_size=5),
    st.integers(1, 2000),
)
def test_whatever_is_in_a_tar_archive_nothing_else_is_raised(
    changes: list[tuple[int, bytes]], step: int
) -> None:
    data = bytearray(tar_of({"n" * 120: b"text" * 200, "b": b"more"}, LINKS))
    for place, noise in changes:
        data[place : place + len(noise)] = noise
    stream = Stream(bytes(data[i : i + step]) for i in range(0, len(data), step))
    with suppress(TarError):
        list(tar_members(stream))
