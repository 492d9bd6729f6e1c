"""Laws of reading: what anybody writes is read back, and nothing in a file makes reading raise."""

import io
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.made_elf import Made, make_elf
from tests.unit.test_read_conda import GOOD as CONDA
from tests.unit.test_read_conda import OLD as OLD_CONDA
from typing_extensions import Buffer

from torchyard.package.contents import Contents
from torchyard.package.limits import Limits
from torchyard.package.read import read_package
from torchyard.package.zip.writer import Member, writing

anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

PARTS = st.text("abcdefgh01_-.äß+ ", min_size=1, max_size=6).filter(lambda part: part.strip("."))
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
CONTENTS = st.one_of(
    st.binary(max_size=300),
    st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 60_000)).map(
        lambda pair: pair[0] * pair[1]
    ),
).map(lambda content: content and b"-" + content)  # and so no program


def unclashing(files: dict[str, bytes]) -> bool:
    folders = {
        "/".join(name.split("/")[:n]) for name in files for n in range(1, name.count("/") + 1)
    }
    return not folders & set(files)


FILES = st.dictionaries(NAMES, CONTENTS, max_size=6).filter(unclashing)


def check(contents: Contents, files: dict[str, bytes]) -> None:
    assert contents.faults == ()
    assert {file.name: (file.size, file.digest) for file in contents.files.values()} == {
        name: (len(content), sha256(content).hexdigest()) for name, content in files.items()
    }


@anywhere
@given(
    FILES,
    st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    st.booleans(),
    st.integers(0, 9),
)
def test_what_zipfile_writes_is_read_back(
    tmp_path: Path, files: dict[str, bytes], method: int, streamed: bool, level: int
) -> None:
    path = tmp_path / "x.whl"
    with path.open("wb") as file:
        out = io.BufferedWriter(Unseekable(file)) if streamed else file
        with out, zipfile.ZipFile(out, "w", method, compresslevel=level) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    check(read_package(path), files)


class Unseekable(io.RawIOBase):
    """A file that can only be written to; zipfile then has to write sizes after the content."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        return self._file.write(data)


@anywhere
@given(FILES, st.sampled_from(["x.whl", "x.zip"]))
def test_what_torchyard_writes_is_read_back(
    tmp_path: Path, files: dict[str, bytes], name: str
) -> None:
    with writing(tmp_path / name) as archive:
        archive.add(Member(name, content) for name, content in files.items())
    check(read_package(tmp_path / name), files)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x-1.dist-info/METADATA", "Name: x\n" * 20)
        archive.writestr("x/lib.so", make_elf(Made(soname="x", needs={"libc.so.6": ["A"]})))
        archive.writestr("x/text.txt", bytes(range(256)) * 3, zipfile.ZIP_STORED)
    return path.read_bytes()


CHANGES = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.binary(min_size=1, max_size=8)), max_size=6
)


@anywhere
@given(CHANGES, st.integers(0, 1 << 20), st.booleans())
def test_changed_and_cut_archives_never_raise(
    tmp_path: Path, good: bytes, changes: list[tuple[int, bytes]], size: int, cut: bool
) -> None:
    read_changed(tmp_path / "x.whl", good, changes, size if cut else len(good))


@anywhere
@given(st.sampled_from(["conda", "tar.bz2"]), CHANGES, st.integers(0, 1 << 20), st.booleans())
def test_changed_and_cut_conda_packages_never_raise(
    tmp_path: Path,
    ending: Literal["conda", "tar.bz2"],
    changes: list[tuple[int, bytes]],
    size: int,
    cut: bool,
) -> None:
    data = CONDA if ending == "conda" else OLD_CONDA
    read_changed(tmp_path / f"x-1.0-h1_0.{ending}", data, changes, size if cut else len(data))


def read_changed(path: Path, good: bytes, changes: list[tuple[int, bytes]], size: int) -> None:
    """Whatever reads without a fault has the contents that it had."""
    path.write_bytes(good)
    before = read_package(path)
    data = bytearray(good)
    for place, noise in changes:
        start = place % len(good)
        data[start : start + len(noise)] = noise
    path.write_bytes(data[: size % (len(good) + 1)])
    contents = read_package(path, limits=Limits(total=1 << 24))
    digests = [file.digest for file in contents.files.values()]
    assert contents.faults or digests == [file.digest for file in before.files.values()]


@anywhere
@given(st.binary(max_size=400), st.sampled_from(["whl", "zip", "conda", "tar.bz2"]))
def test_any_bytes_are_at_most_faults(tmp_path: Path, data: bytes, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    path.write_bytes(data)
    assert read_package(path).faults
