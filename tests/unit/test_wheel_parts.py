"""Wheels of which only parts are read, from a server."""

import random
import zipfile
from pathlib import Path

import pytest
from tests.support.made_elf import Made, make_elf
from tests.support.offered import served
from tests.support.web import FileServer

from torchyard.errors import CheckError, ElsewhereError, HostError
from torchyard.host.remote_file import RemoteFile
from torchyard.package.elf.symbols import split_names
from torchyard.package.wheel import parts
from torchyard.package.wheel.parts import WheelParts
from torchyard.package.zip import parts as member_parts

FILE = "demo-1.0-cp312-cp312-linux_x86_64.whl"
ABOUT = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Dist: torch>=2.10\n"
NAMES = [f"_ZN2at6symbol{number}Ev" for number in range(20_000)]
ELSEWHERE = ["_ZN3c104hereEv", "maybe"]


def noise(size: int) -> bytes:
    """Bytes that can be packed, but not by much."""
    chance = random.Random(size)  # noqa: S311 - no secret
    return b" ".join(b"%d" % chance.getrandbits(40) for _ in range(size // 13))


def library(*, names_last: bool) -> bytes:
    """A library with many symbols; one that it needs is weak."""
    symbols = [(name, 1, 0, 1) for name in NAMES]
    needed = [(name, 1 + (name == "maybe"), 0, 0) for name in ELSEWHERE]
    return make_elf(
        Made(
            soname="libdemo.so",
            needed=["libc10.so"],
            symbols=[*needed, *symbols],
            filler=noise(6 << 20),
            names_last=names_last,
        )
    )


def write_wheel(folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / FILE
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"demo-1.0.dist-info/METADATA": ABOUT, **members}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of a few megabytes are large."""
    monkeypatch.setattr(parts, "_LARGE", 1 << 20)
    monkeypatch.setattr(member_parts, "_MORE", 64 << 10)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("names_last", [False, True])
def test_of_a_large_library_the_ends_are_read(tmp_path: Path, names_last: bool) -> None:
    wheel = write_wheel(tmp_path, {"demo/lib.so": library(names_last=names_last)})
    with FileServer(tmp_path) as server:
        found = WheelParts(RemoteFile(f"{server.url}/{FILE}"))
        assert list(found.exports("demo/lib.so")) == [name.encode() for name in NAMES]
        assert server.sent(".whl") < wheel.stat().st_size / 2


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("names_last", [False, True])
def test_the_loader_sees_the_same_of_parts_as_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names_last: bool
) -> None:
    write_wheel(tmp_path, {"demo/lib.so": library(names_last=names_last)})
    file = RemoteFile((tmp_path / FILE).as_uri())
    some = WheelParts(file).binary("demo/lib.so")
    monkeypatch.setattr(parts, "_LARGE", 1 << 30)
    whole = WheelParts(file).binary("demo/lib.so")
    assert some is not None
    assert whole is not None
    for field in ("needed", "soname", "exports", "imports", "weak", "machine"):
        assert getattr(some, field) == getattr(whole, field), field
    assert list(split_names(whole.imports)) == [name.encode() for name in ELSEWHERE]
    assert whole.weak == b"maybe\0"


def test_metadata_and_libraries_are_found(tmp_path: Path) -> None:
    write_wheel(tmp_path, {"demo/lib.so.1": b"text", "demo/lib.so.txt": b"", "demo/a.py": b""})
    with FileServer(tmp_path) as server:
        wheel = WheelParts(RemoteFile(f"{server.url}/{FILE}"))
        assert wheel.metadata == ABOUT
        assert wheel.libraries() == ["demo/lib.so.1"]
        assert wheel.binary("demo/lib.so.1") is None
        assert list(wheel.exports("demo/lib.so.1")) == []


def test_a_damaged_library_is_refused(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, {"demo/lib.so": make_elf(Made(needed=["libc10.so"]))})
    data = bytearray(path.read_bytes())
    start = data.index(b"demo/lib.so") + len("demo/lib.so")
    data[start + 20] ^= 0xFF
    path.write_bytes(data)
    wheel = WheelParts(RemoteFile(path.as_uri()))
    with pytest.raises(CheckError, match=r"demo/lib\.so does not match"):
        wheel.binary("demo/lib.so")


def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, {"demo/a.py": b"a = 1\n"})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CheckError, match="cut off"):
        WheelParts(RemoteFile(path.as_uri()))


def test_a_server_must_send_parts(tmp_path: Path) -> None:
    write_wheel(tmp_path, {})
    with (
        served(tmp_path) as url,
        pytest.raises(ElsewhereError, match="does not support range requests"),
    ):
        WheelParts(RemoteFile(f"{url}{FILE}"))


def test_a_file_must_be_there(tmp_path: Path) -> None:
    with FileServer(tmp_path) as server, pytest.raises(HostError, match="404"):
        RemoteFile(f"{server.url}/{FILE}")


@pytest.mark.parametrize("reads", [[(10, 0), (5, 10), (30, 12)], [(7, 90), (50, 95), (3, 0)]])
def test_reads_are_those_of_the_file(tmp_path: Path, reads: list[tuple[int, int]]) -> None:
    data = bytes(range(100))
    (tmp_path / "a.whl").write_bytes(data)
    with FileServer(tmp_path) as server:
        file = RemoteFile(f"{server.url}/a.whl")
        for size, offset in reads:
            assert file.read(size, offset) == data[offset : offset + size]
