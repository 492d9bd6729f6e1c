"""Repairing packages without libraries: labels, RECORD, and members that are copied as they are."""

import csv
import io
import json
import struct
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename
from tests.support.helpers import Command
from tests.support.made_zip import MAX_32, Made, make_zip
from tests.support.schemas import validate

from torchyard.errors import BuildError, CheckError, UsageError
from torchyard.package.limits import LIMITS
from torchyard.package.repair.operations import Operation, Retag, Reversion, SetRpath, Strip
from torchyard.package.repair.repair import new_name, repair
from torchyard.package.repair.retag import metadata_text, version_text, wheel_text
from torchyard.package.wheel.dist_info import updated_record
from torchyard.package.wheel.name import WheelName
from torchyard.package.wheel.platform_tags import refuse_unknown_platforms
from torchyard.package.zip.directory import read_directory
from torchyard.package.zip.raw_copy import _row
from torchyard.package.zip.writer import Written

HOME = "tiny-1.2.0+cpu.dist-info/"
FILES: Mapping[str, bytes] = {
    "tiny/": b"",
    "tiny/__init__.py": b"from tiny.version import __version__\n" * 40,
    "tiny/version.py": b"__version__ = '1.2.0+cpu'\ncuda = None\n",
    "tiny/data.bin": bytes(range(256)) * 9,
    "tiny-1.2.0+cpu.data/scripts/tool": b"#!/bin/sh\n",
    f"{HOME}METADATA": (
        b"Metadata-Version: 2.4\nName: tiny\nVersion: 1.2.0+cpu\n"
        b"Requires-Dist: numpy==1.2.0+cpu\n\n"
        b"Version: 1.2.0+cpu is described here.\n"
    ),
    f"{HOME}WHEEL": (
        b"Wheel-Version: 1.0\nGenerator: other 7\nRoot-Is-Purelib: false\n"
        b"Tag: cp311-cp311-linux_x86_64\nBuild: 3\n\n"
    ),
    f"{HOME}licenses/LICENSE, too": b"free\n",
}
NAME = "tiny-1.2.0+cpu-3-cp311-cp311-linux_x86_64.whl"


def row(name: str, data: bytes) -> tuple[str, str, str]:
    digest = urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
    return name, f"sha256={digest}", str(len(data))


def record(files: Mapping[str, bytes], own: str) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow((own, "", ""))  # nobody says that it must be the last
    rows.writerows(row(*item) for item in files.items() if not item[0].endswith("/"))
    return text.getvalue().encode()


class Stream(io.RawIOBase):
    """A file that can't seek: zipfile writes sizes behind the members then."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        assert isinstance(data, bytes | bytearray | memoryview)
        return self._file.write(data)


def make_wheel(
    folder: Path,
    files: Mapping[str, bytes] = FILES,
    *,
    name: str = NAME,
    home: str = HOME,
    streamed: bool = False,
) -> Path:
    """Write a wheel as others do: folders, dates, modes, stored members, RECORD in the middle."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    items = list({**files, f"{home}RECORD": record(files, f"{home}RECORD")}.items())
    items.insert(-2, items.pop())
    with path.open("wb") as file:
        target: IO[bytes] = io.BufferedWriter(Stream(file)) if streamed else file
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, (member, data) in enumerate(items):
                info = zipfile.ZipInfo(member, (2001 + number, 2, 3, 4, 5, 6))
                info.external_attr = (0o100755 if "scripts" in member else 0o100640) << 16
                info.compress_type = zipfile.ZIP_STORED if "data.bin" in member else 8
                info.comment = b"said" if number == 1 else b""
                info.extra = struct.pack("<HHI", 0x7777, 4, number) if number == 3 else b""
                archive.writestr(info, data)
        target.flush()
    return path


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert len(set(archive.namelist())) == len(archive.namelist())
        return {name: archive.read(name) for name in archive.namelist()}


def regions(path: Path) -> dict[str, bytes]:
    """All bytes of each member: its header, its data, and what follows them."""
    data = path.read_bytes()
    with path.open("rb") as file:
        directory = read_directory(file)
    assert not directory.faults
    return {entry.name: data[entry.header : entry.end] for entry in directory.entries}


def rows_of(path: Path) -> dict[str, tuple[object, ...]]:
    """What the directory says of each member, but for its place."""
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: (
                *(info.date_time, info.compress_type, info.comment, info.extra, info.flag_bits),
                *(info.create_system, info.create_version, info.extract_version),
                *(info.internal_attr, info.external_attr, info.CRC, info.compress_size),
            )
            for info in archive.infolist()
        }


def check_wheel(path: Path) -> dict[str, bytes]:
    """Verify a wheel without any of our code: name, folders, metadata, tags, RECORD."""
    name, version, build, tags = parse_wheel_filename(path.name)
    files = contents(path)
    homes = {member.partition("/")[0] for member in files if ".dist-info/" in member}
    assert homes == {f"{name}-{version}.dist-info"}
    home = homes.pop()
    about = Metadata.from_email(files[f"{home}/METADATA"], validate=True)
    assert about.version == version
    lines = files[f"{home}/WHEEL"].decode().splitlines()
    assert {line[5:] for line in lines if line.startswith("Tag: ")} == set(map(str, tags))
    assert not build or f"Build: {build[0]}" in lines
    rows = list(csv.reader(io.StringIO(files[f"{home}/RECORD"].decode())))
    wanted = [row(*item) for item in files.items() if not item[0].endswith(("/", "/RECORD"))]
    assert sorted(map(tuple, rows)) == sorted([*wanted, (f"{home}/RECORD", "", "")])
    return files


def repaired(tmp_path: Path, *operations: Operation, streamed: bool = False) -> Path:
    path = make_wheel(tmp_path / "in", streamed=streamed)
    return repair(path, operations, tmp_path / "out").path


# -------------------------------------------------------------------------------------- labels


def test_a_wheel_gets_other_tags(tmp_path: Path) -> None:
    tags = Retag(python="cp39.cp310", abi="abi3", platform="manylinux_2_17_x86_64")
    path = repaired(tmp_path, tags)
    assert path.name == "tiny-1.2.0+cpu-3-cp39.cp310-abi3-manylinux_2_17_x86_64.whl"
    text = check_wheel(path)[f"{HOME}WHEEL"]
    both = b"Tag: cp310-abi3-manylinux_2_17_x86_64\nTag: cp39-abi3-manylinux_2_17_x86_64\n"
    assert text == FILES[f"{HOME}WHEEL"].replace(b"Tag: cp311-cp311-linux_x86_64\n", both)


@pytest.mark.parametrize(
    ("operation", "version"),
    [
        (Reversion(local="cu130"), "1.2.0+cu130"),
        (Reversion(local=""), "1.2.0"),
        (Reversion(version="2.0rc1"), "2.0rc1"),
        (Reversion(version="2.0.dev1+rocm7.2"), "2.0.dev1+rocm7.2"),
    ],
)
def test_a_wheel_gets_another_version(tmp_path: Path, operation: Reversion, version: str) -> None:
    path = repaired(tmp_path, operation)
    assert path.name == f"tiny-{version}-3-cp311-cp311-linux_x86_64.whl"
    files = check_wheel(path)
    assert files["tiny/version.py"] == f"__version__ = '{version}'\ncuda = None\n".encode()
    assert files[f"tiny-{version}.data/scripts/tool"] == b"#!/bin/sh\n"
    # What others are asked for, and what the description says, is not the version.
    old = FILES[f"{HOME}METADATA"]
    new = old.replace(b"\nVersion: 1.2.0+cpu\n", f"\nVersion: {version}\n".encode())
    assert files[f"tiny-{version}.dist-info/METADATA"] == new


def test_a_version_inside_that_the_name_lacks_is_changed_too(tmp_path: Path) -> None:
    path = make_wheel(
        tmp_path,
        {**FILES, "tiny/version.py": b'__version__: str = "1.2.0+cu132"\n'},
    )
    done = repair(path, [Reversion(local="")], tmp_path / "out")
    assert check_wheel(done.path)["tiny/version.py"] == b'__version__: str = "1.2.0"\n'


def test_a_name_that_was_part_of_an_address(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, name=NAME.replace("+", "%2B"))
    done = repair(path, [Reversion(local="cu130")], tmp_path / "out")
    assert done.path.name == NAME.replace("cpu", "cu130")
    assert check_wheel(done.path)["tiny/version.py"].startswith(b"__version__ = '1.2.0+cu130'")


def test_one_label_after_another(tmp_path: Path) -> None:
    path = repaired(tmp_path, Reversion(version="3.0"), Retag(abi="none"), Reversion(local="x"))
    assert path.name == "tiny-3.0+x-3-cp311-none-linux_x86_64.whl"
    check_wheel(path)


def test_versions_that_are_far_too_long(tmp_path: Path) -> None:
    text = b"__version__ = '" + b"1" * 5000 + b"'\n"
    path = make_wheel(tmp_path, {**FILES, "tiny/version.py": text})
    done = repair(path, [Reversion(local="x")], tmp_path / "out")
    assert check_wheel(done.path)["tiny/version.py"] == text
    with pytest.raises(UsageError, match="1` is not a version"):
        repair(path, [Reversion(version="1" * 5000)], tmp_path / "out")


def test_a_version_that_is_none_can_be_replaced(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, name="tiny-new-3-cp311-cp311-linux_x86_64.whl")
    done = repair(path, [Reversion(version="3.0")], tmp_path / "out")
    assert done.path.name == "tiny-3.0-3-cp311-cp311-linux_x86_64.whl"
    with pytest.raises(UsageError, match=r"`new\+x` is not a version"):
        repair(path, [Reversion(local="x")], tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"__version__ = '1.2.0'\n", b"__version__ = '3.0'\n"),
        (b"__version__ = version = '1.2.0+x'\n", b"__version__ = version = '3.0'\n"),
        (b"# __version__ = '1.2.0'\n", b"# __version__ = '1.2.0'\n"),
        (b"__version__ = '1.2.1'\n", b"__version__ = '1.2.1'\n"),
        (b"__version__ = 'unknown'\n", b"__version__ = 'unknown'\n"),
        (b"__version__ = read('1.2.0')\n", b"__version__ = read('1.2.0')\n"),
        (b"x\r\n__version__ = '1.2'\r\n", b"x\r\n__version__ = '1.2'\r\n"),
        (
            b'version = "1.2.0"\n__version__ = version\n',
            b'version = "3.0"\n__version__ = version\n',
        ),
        (b"v: str = '1.2.0'\r\n__version__ = v\r\n", b"v: str = '3.0'\r\n__version__ = v\r\n"),
        (b'version = "1.2.0"\n__version__ = full\n', b'version = "1.2.0"\n__version__ = full\n'),
    ],
)
def test_only_the_package_own_version_is_changed(text: bytes, expected: bytes) -> None:
    assert version_text(text, "1.2.0+cpu", "3.0") == expected


def test_texts_keep_their_line_ends() -> None:
    assert metadata_text(b"Name: a\r\nVersion: 1\r\n\r\nText\r\n", "2") == (
        b"Name: a\r\nVersion: 2\r\n\r\nText\r\n"
    )

    assert wheel_text(b"A: 1\r\nTag: a-b-c\r\n", "d-e-f.g") == (
        b"A: 1\r\nTag: d-e-f\r\nTag: d-e-g\r\n"
    )


def test_no_old_tag_stays() -> None:
    text = b"Wheel-Version: 1.0\nTag: a-b-c\nTag: a-b-d\nBuild: 1\nTag: e-f-g\n"
    assert wheel_text(text, "x-y-z") == b"Wheel-Version: 1.0\nTag: x-y-z\nBuild: 1\n"


def test_a_long_line_takes_no_time() -> None:
    text = b"__version__:" + b" " * 1_000_000
    assert version_text(text, "1", "2") == text


def test_texts_that_are_none() -> None:
    with pytest.raises(CheckError, match="no line `Tag:`"):
        wheel_text(b"Wheel-Version: 1.0\n", "py3-none-any")
    with pytest.raises(CheckError, match="has 0 lines `Version:`"):
        metadata_text(b"Name: a\n\nVersion: 1\n", "2")


@pytest.mark.parametrize(
    ("name", "operation", "expected"),
    [
        ("libtorch-shared-with-deps-2.5.0%2Bcpu.zip", "cu130", "2.5.0+cu130"),
        ("libtorch-shared-with-deps-2.5.0+cpu.zip", "", "2.5.0"),
    ],
)
def test_names_of_zips(name: str, operation: str, expected: str) -> None:
    assert (
        new_name(name, [Reversion(local=operation)]) == f"libtorch-shared-with-deps-{expected}.zip"
    )
    assert new_name("libtorch-latest.zip", [Reversion(local="x")]) == "libtorch-latest.zip"


def test_a_zip_gets_another_version(tmp_path: Path) -> None:
    path = tmp_path / "libtorch-shared-with-deps-2.5.0+cpu.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("libtorch/build-version", "2.5.0+cpu\n")
        archive.writestr("libtorch/include/a.h", "int a;\n")
        archive.writestr("libtorch/share/build-version", "2.5.0+cpu\n")
    done = repair(path, [Reversion(version="2.5.1")], tmp_path / "out")
    assert done.path.name == "libtorch-shared-with-deps-2.5.1.zip"
    assert contents(done.path) == {
        "libtorch/build-version": b"2.5.1\n",
        "libtorch/include/a.h": b"int a;\n",
        "libtorch/share/build-version": b"2.5.0+cpu\n",
    }
    with pytest.raises(UsageError, match="is not a wheel"):
        repair(path, [Retag(abi="abi3")], tmp_path / "out")


def test_a_row_of_record_that_is_there_twice_does_not_keep_its_old_digest() -> None:
    text = "a,sha256=x,1\nb,,\na,sha256=x,1\nRECORD,,\n"
    new = updated_record(text, [Written("a", 2, b"..")], "RECORD", lambda name: name)
    assert new == "a,sha256=Li4,2\nb,,\nRECORD,,\n"


def test_a_text_that_is_none_is_not_unpacked(tmp_path: Path) -> None:
    large = FILES[f"{HOME}METADATA"] + b"." * LIMITS.text
    path = make_wheel(tmp_path, {**FILES, f"{HOME}METADATA": large})
    with pytest.raises(
        CheckError, match=f"unpacks to {len(large)} bytes; the limit is {LIMITS.text}"
    ):
        repair(path, [Reversion(local="")], tmp_path / "out")


def test_a_library_that_is_none_is_not_unpacked(tmp_path: Path) -> None:
    size = LIMITS.harmless + 4
    path = tmp_path / "x.zip"
    path.write_bytes(make_zip([Made(content=b"\x7fELF" + bytes(LIMITS.harmless))]))
    with pytest.raises(
        CheckError, match=f"unpacks to {size} bytes; the limit is {LIMITS.harmless}"
    ):
        repair(path, [Strip()], tmp_path / "out")


def test_members_that_are_larger_than_any_package(tmp_path: Path) -> None:
    size = struct.pack("<HHQ", 1, 8, LIMITS.total + 1)
    path = tmp_path / "x.zip"
    path.write_bytes(make_zip([Made(size=MAX_32, extra=size, own_extra=size)]))
    with pytest.raises(CheckError, match="larger than any package"):
        repair(path, [Strip()], tmp_path / "out")


@pytest.mark.parametrize("text", ['"' + "a" * 200_000 + '",,', "a\rb,,"])
def test_rows_of_record_that_are_none(text: str) -> None:
    with pytest.raises(BuildError, match="RECORD has a malformed line"):
        updated_record(text, [], "RECORD", lambda name: f"new/{name}")


# --------------------------------------------------------------------------------- raw copies


@pytest.mark.parametrize("streamed", [False, True])
def test_what_does_not_change_is_copied_as_it_is(tmp_path: Path, streamed: bool) -> None:
    path = repaired(tmp_path, Retag(platform="any"), streamed=streamed)
    source = tmp_path / "in" / NAME
    before, after = regions(source), regions(path)
    new = {f"{HOME}WHEEL", f"{HOME}RECORD"}
    assert [n for n in before if n not in new] == [n for n in after if n not in new]
    assert {n for n in before if before[n] != after[n]} == new
    rows, new_rows = rows_of(source), rows_of(path)
    assert {n for n in rows if rows[n] != new_rows[n]} == new


@pytest.mark.parametrize("streamed", [False, True])
def test_what_only_gets_another_name_keeps_its_data(tmp_path: Path, streamed: bool) -> None:
    path = repaired(tmp_path, Reversion(local="gr"), streamed=streamed)
    before, after = regions(tmp_path / "in" / NAME), regions(path)
    old, new = (
        before[f"{HOME}licenses/LICENSE, too"],
        after["tiny-1.2.0+gr.dist-info/licenses/LICENSE, too"],
    )
    assert old[:26] == new[:26]
    assert old.partition(b"LICENSE, too")[2] == new.partition(b"LICENSE, too")[2]


@pytest.mark.parametrize("size", [7, 5 << 30])
@pytest.mark.parametrize("offset", [9, 6 << 30])
def test_rows_tell_large_numbers_once(tmp_path: Path, size: int, offset: int) -> None:
    """Some programs mark both sizes as too large if one of them is, or none is."""
    with make_wheel(tmp_path).open("rb") as file:
        entry = read_directory(file).entries[1]
    wide = struct.pack("<HHQQ", 1, 16, size, 5)
    row = bytearray(entry.row[: 46 + len(entry.raw_name)] + wide + entry.comment)
    row[20:28] = b"\xff" * 8
    row[30:32] = struct.pack("<H", len(wide))
    entry = entry._replace(size=size, stored=5, extra=wide, row=bytes(row))
    fields = struct.unpack_from("<4sHHHHHHIIIHHHHHII", _row(entry, entry.name, offset))
    large = [number for number in (size, offset) if number > 0xFFFFFFFF]
    extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    assert _row(entry, entry.name, offset).endswith(entry.raw_name + extra + entry.comment)
    assert fields[8:10] == (5, min(size, 0xFFFFFFFF))
    assert (fields[11], fields[16]) == (len(extra), min(offset, 0xFFFFFFFF))


def test_new_members_are_written_as_ours_are(tmp_path: Path) -> None:
    path = repaired(tmp_path, Retag(platform="any"))
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(f"{HOME}WHEEL")
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert info.external_attr >> 16 == 0o100644
        assert archive.namelist()[-1] == f"{HOME}RECORD"


def test_the_same_package_and_operations_give_the_same_bytes(tmp_path: Path) -> None:
    operations: list[Operation] = [Retag(python="cp312"), Reversion(local="cu130")]
    source = make_wheel(tmp_path)
    first = repair(source, operations, tmp_path / "one").path
    second = repair(source, operations, tmp_path / "two").path
    assert first.read_bytes() == second.read_bytes()


def test_there_and_back_again_changes_no_content(tmp_path: Path) -> None:
    source = make_wheel(tmp_path)
    there = repair(source, [Reversion(local="cu130")], tmp_path / "there").path
    back = repair(there, [Reversion(local="cpu")], tmp_path / "back").path
    assert check_wheel(back).keys() == contents(source).keys()
    own = f"{HOME}RECORD"
    old, new = contents(source), contents(back)
    assert {name for name in old if old[name] != new[name]} == {own}


@pytest.mark.parametrize(
    "operation",
    [Retag(platform="linux_x86_64"), Reversion(local="cpu"), SetRpath(value="/x"), Strip()],
)
def test_a_package_that_is_as_it_should_be_is_copied(tmp_path: Path, operation: Operation) -> None:
    source = make_wheel(tmp_path / "in")
    done = repair(source, [operation], tmp_path / "out")
    assert done.changed == ()
    assert done.path.read_bytes() == source.read_bytes()


def test_the_comment_of_an_archive_stays(tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"made by hand"
    done = repair(path, [Reversion(local="")], tmp_path / "out")
    assert zipfile.ZipFile(done.path).comment == b"made by hand"
    check_wheel(done.path)


def test_signatures_of_the_old_record_are_left_out(tmp_path: Path) -> None:
    source = make_wheel(tmp_path, {**FILES, f"{HOME}RECORD.jws": b"{}"})
    done = repair(source, [Retag(platform="any")], tmp_path / "out")
    assert f"{HOME}RECORD.jws" not in check_wheel(done.path)
    assert f"{HOME}RECORD.jws" in {change.member for change in done.changed}


@given(
    st.dictionaries(
        st.text('ab,"é /.', min_size=1, max_size=8)
        .map(lambda text: "tiny/x" + text.replace("/", "/d").rstrip("/. ") + "z")
        .filter(lambda name: "//" not in name and "/." not in name and not name.startswith("/")),
        st.binary(max_size=80),
        max_size=5,
    )
)
def test_any_other_members_stay_and_stay_listed(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    taken = {name.casefold() for name in files}
    if len(taken) < len(files) or any(a.startswith(f"{b}/") for a in files for b in files):
        return
    source = make_wheel(folder, {**FILES, **files})
    done = repair(source, [Reversion(version="7")], folder / "out")
    after = check_wheel(done.path)
    assert {name: after[name] for name in files} == files


# ------------------------------------------------------------------------------------ refusals


def damaged(tmp_path: Path, change: str) -> Path:
    path = make_wheel(tmp_path)
    data = bytearray(path.read_bytes())
    if change == "cut":
        path.write_bytes(data[:-40])
    elif change == "in front":
        path.write_bytes(b"#!/bin/sh\n" + data)
    elif change == "name":
        place = data.find(b"tiny/data.bin")
        data[place : place + 4] = b"evil"
        path.write_bytes(data)
    else:
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("../evil.py", b"")
    return path


@pytest.mark.parametrize("change", ["cut", "in front", "name", "escape"])
def test_archives_that_are_no_good_are_refused(tmp_path: Path, change: str) -> None:
    path = damaged(tmp_path, change)
    with pytest.raises(CheckError, match="can't be unpacked: "):
        repair(path, [Retag(platform="any")], tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


def test_a_damaged_member_that_must_be_read_is_told(tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(f"{HOME}METADATA")
    data[info.header_offset + 30 + len(info.filename) + 20] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CheckError, match="METADATA` does not match its checksum"):
        repair(path, [Reversion(local="x")], tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize(
    ("gone", "message"),
    [("METADATA", "has no `tiny-1.2.0\\+cpu.dist-info/METADATA`"), ("", "but has none")],
)
def test_what_is_no_wheel_is_refused(tmp_path: Path, gone: str, message: str) -> None:
    files = {n: d for n, d in FILES.items() if not gone or gone not in n}
    path = make_wheel(tmp_path, files) if gone else make_wheel(tmp_path, {}, home="x/")
    with pytest.raises(CheckError, match=message):
        repair(path, [Reversion(local="x")], tmp_path / "out")


@pytest.mark.parametrize("name", ["tiny-1.whl", "a-1-2-3-4-5-6.whl"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(CheckError, match="is not the name of a wheel"):
        WheelName.parse(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [("a-1-0.conda", "is a conda package"), ("a.tar.gz", "not a repairable package")],
)
def test_other_packages_are_refused(
    torchyard: Command, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / name).write_bytes(b"")
    done = torchyard("repair", tmp_path / name, "-o", tmp_path / "out", "--rpath", "$ORIGIN")
    assert done.code == 2
    assert message in done.err


def test_a_package_is_never_replaced_by_its_repair(tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="would replace the original"):
        repair(path, [Retag(platform="linux_x86_64")], tmp_path)
    assert path.read_bytes() == before


def test_a_package_that_needs_no_gpu_is_for_cpus(tmp_path: Path) -> None:
    name, home = NAME.replace("+cpu", ""), HOME.replace("+cpu", "")
    files = {n.replace("+cpu", ""): d.replace(b"+cpu", b"") for n, d in FILES.items()}
    path = make_wheel(tmp_path, files, name=name, home=home)
    done = repair(path, [SetRpath()], tmp_path / "out")
    assert done.changed == ()
    assert done.notes == ("no program or library in it is for Linux: others are unchanged",)


@pytest.mark.parametrize("member", ["tiny/version.py", "tiny/__init__.py"])
def test_an_old_version_that_stays_is_told(tmp_path: Path, member: str) -> None:
    source = make_wheel(tmp_path, {**FILES, member: b"version = '1.2.0+cpu'\n"})
    notes = repair(source, [Reversion(version="3.0")], tmp_path / "out").notes
    assert notes == (f"the old version 1.2.0+cpu is still in {member}",)
    assert not repair(source, [Retag(platform="any")], tmp_path / "out").notes


def test_a_longer_version_is_another_one(tmp_path: Path) -> None:
    text = b"__version__ = '1.2.0+cpu'\nbuilt_with = '1.2.0+cpu.x', '11.2.0+cpu'\n"
    source = make_wheel(tmp_path, {**FILES, "tiny/version.py": text})
    assert not repair(source, [Reversion(version="3.0")], tmp_path / "out").notes


@pytest.mark.parametrize(
    "tags",
    [
        "any",
        "win32",
        "win_amd64",
        "linux_x86_64",
        "manylinux1_i686.manylinux2014_x86_64.manylinux_2_28_aarch64",
        "musllinux_1_2_riscv64",
        "macosx_14_0_universal2",
        "ios_13_0_arm64_iphoneos",
        "android_24_arm64_v8a",
        "pyodide_2025_0_wasm32",
    ],
)
def test_platforms_that_there_are(tags: str) -> None:
    refuse_unknown_platforms(tags)


@pytest.mark.parametrize(
    ("tags", "tag", "hint"),
    [
        ("linux_x86_63", "linux_x86_63", "did you mean `linux_x86_64`?"),
        (
            "any.manylinux_2_28_arch64",
            "manylinux_2_28_arch64",
            "did you mean `manylinux_2_28_aarch64`?",
        ),
        ("manylinux_2_x86_64", "manylinux_2_x86_64", "tags look like manylinux_2_28_x86_64"),
        ("win_amd46", "win_amd46", "did you mean `win_amd64`?"),
        ("linux", "linux", "tags look like"),
        ("anything", "anything", "tags look like"),
    ],
)
def test_platforms_that_there_are_not(tags: str, tag: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"`{tag}` is not a platform tag of wheels") as error:
        refuse_unknown_platforms(tags)
    assert hint in str(error.value.diagnostics[0].hint)


# --------------------------------------------------------------------------------- the command


def test_the_command_tells_what_changed(torchyard: Command, tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    done = torchyard("repair", path, "-o", tmp_path / "out", "--local", "none", "--no-check")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0][0] == str(tmp_path / "out" / NAME.replace("+cpu", ""))
    assert ["tiny/version.py", "version", "1.2.0+cpu", "→", "1.2.0"] in lines


def test_what_was_made_is_checked(torchyard: Command, tmp_path: Path) -> None:
    path = make_wheel(tmp_path, {**FILES, "evil.pth": b"import os\n"})
    args = ("repair", path, "-o", tmp_path / "out", "--local", "none", "--policy", "strict")
    done = torchyard(*args)
    assert done.code == 13
    assert "evil.pth" in done.out
    assert (tmp_path / "out" / NAME.replace("+cpu", "")).exists()
    done = torchyard(*args, "--json")
    assert done.code == 13
    assert json.loads(done.out)["check"][0]["findings"][0]["severity"] == "error"


def test_the_command_prints_json(torchyard: Command, tmp_path: Path) -> None:
    first, second = (
        make_wheel(tmp_path / "a"),
        make_wheel(tmp_path / "b", name=NAME.replace("-3-", "-4-")),
    )
    args = ("-o", tmp_path / "out", "--python-tag", "py3", "--no-check", "--json")
    done = torchyard("repair", first, second, *args)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    validate(document, "repair")
    assert [package["source"] for package in document["packages"]] == [str(first), str(second)]
    assert document["packages"][0]["changes"][0]["member"] == f"{HOME}WHEEL"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "there is nothing to repair"),
        (["--local", "x", "--version", "1"], "contradict each other"),
        (["--version", "new"], "`new` is not a version"),
        (["--platform-tag", "linux-x86"], "is not a platform tag of wheels"),
        (["--platform-tag", "linux_x86_63"], "is not a platform tag of wheels"),
        (["--needed", "libx.so"], "does not show which library"),
        (["--needed", "=libx.so"], "would make every library need one more"),
        (["--members", "*.so", "--local", "x"], "--members has no effect"),
    ],
)
def test_commands_that_make_no_sense(
    torchyard: Command, tmp_path: Path, args: Sequence[str], message: str
) -> None:
    done = torchyard("repair", make_wheel(tmp_path), "-o", tmp_path / "out", *args)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()


def test_the_output_must_be_a_directory(torchyard: Command, tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    done = torchyard("repair", path, "-o", path, "--local", "none")
    assert done.code == 2
    assert "is a file" in done.err


def test_the_command_tells_what_is_left_to_do(torchyard: Command, tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    args = ("repair", path, "-o", tmp_path / "out", "--rpath", "$ORIGIN", "--no-check")
    assert "  note: no program or library in it is for Linux" in torchyard(*args).out
    (note,) = json.loads(torchyard(*args, "--json").out)["packages"][0]["notes"]
    assert note.startswith("no program or library")


def test_two_packages_never_get_one_name(torchyard: Command, tmp_path: Path) -> None:
    first = make_wheel(tmp_path / "a")
    second = make_wheel(tmp_path / "b", name=NAME.replace("cp311-cp311", "cp312-cp312"))
    tags = ("--python-tag", "py3", "--abi-tag", "none")
    done = torchyard("repair", first, second, "-o", tmp_path / "out", *tags)
    assert done.code == 2
    assert "would both become" in done.err


def test_a_glob_that_fits_nothing_is_told(torchyard: Command, tmp_path: Path) -> None:
    args = ("--rpath", "$ORIGIN", "--members", "tiny/*.so")
    done = torchyard("repair", make_wheel(tmp_path), "-o", tmp_path / "out", *args)
    assert done.code == 5
    assert "matches `tiny/*.so`" in done.err
