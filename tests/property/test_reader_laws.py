"""What readers promise: they give back what was written, and nothing makes them raise."""

import csv
import zlib
from contextlib import suppress
from hashlib import sha256
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz import fuzz_device, fuzz_elf, fuzz_foreign, fuzz_texts, fuzz_zip
from tests.fuzz.laws import check_all, read_bytes
from tests.support.examples import examples

from torchyard.errors import BuildError
from torchyard.package.contents import Contents, FaultKind
from torchyard.package.read import read_package
from torchyard.package.wheel.dist_info import parse_record, record
from torchyard.package.wheel.write import Field, parse_metadata
from torchyard.package.zip.directory import ZipEntry, read_directory, reader_of
from torchyard.package.zip.inflate import BadDataError, pieces, whole
from torchyard.package.zip.writer import Written

WHEEL = "tiny-1.0-py3-none-any.whl"

words = st.from_regex(r"[a-z0-9_+]{1,8}", fullmatch=True)
paths = st.lists(words, min_size=1, max_size=4).map("/".join)
small = st.binary(max_size=200)
repeated = st.tuples(st.binary(min_size=1, max_size=20), st.integers(1, 200_000)).map(
    lambda parts: (parts[0] * parts[1])[:2_000_000]
)
texts = st.text(st.characters(codec="utf-8"), max_size=30)
one_line = texts.filter(lambda text: text.isprintable())
field_names = st.from_regex(r"[A-Za-z][A-Za-z-]{0,12}", fullmatch=True)


def is_possible(members: dict[str, bytes]) -> bool:
    """No file is also a folder."""
    return not any(other.startswith(f"{name}/") for name in members for other in members)


archives = st.dictionaries(paths, small, max_size=6).filter(is_possible)


def zipped(members: dict[str, bytes], method: int) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def contents_of(data: bytes) -> Contents:
    with TemporaryDirectory() as folder:
        path = Path(folder) / WHEEL
        path.write_bytes(data)
        return read_package(path)


@given(archives, st.sampled_from((ZIP_STORED, ZIP_DEFLATED)))
def test_an_archive_holds_what_was_put_in(members: dict[str, bytes], method: int) -> None:
    contents = contents_of(zipped(members, method))
    assert all(fault.kind is FaultKind.BINARY for fault in contents.faults)  # some begin like one
    found = {name: (file.size, file.digest) for name, file in contents.files.items()}
    assert found == {n: (len(data), sha256(data).hexdigest()) for n, data in members.items()}


@given(archives, st.data())
def test_a_damaged_archive_is_told_and_never_raises(
    members: dict[str, bytes], data: st.DataObject
) -> None:
    good = zipped(members, ZIP_DEFLATED)
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    check_all(read_bytes(bytes(damaged), WHEEL))
    if len(damaged) < len(good):
        assert contents_of(bytes(damaged)).faults


rows = st.builds(
    Written,
    texts.filter(lambda text: text and "\r" not in text),
    st.integers(0, 10**18 - 1),
    st.one_of(st.just(b""), st.binary(min_size=32, max_size=32)),
)


@given(st.lists(rows, max_size=5))
@example([Written('a,"b"\n\nc', 1, bytes(32))])
def test_record_gives_back_what_was_listed(written: list[Written]) -> None:
    listed, problems = parse_record(record(written, "own/RECORD"))
    assert problems == []
    assert [(row.name, row.digest) for row in listed[:-1]] == [
        (row.name, row.digest.hex()) for row in written
    ]
    assert [row.size for row in listed[:-1]] == [
        row.size if row.digest else None for row in written
    ]
    assert listed[-1].name == "own/RECORD"


@given(st.lists(st.lists(texts, max_size=4), max_size=5))
def test_every_row_of_record_is_told_or_a_problem(table: list[list[str]]) -> None:
    text = StringIO()
    csv.writer(text).writerows(table)
    listed, problems = parse_record(text.getvalue())
    assert len(listed) + len(problems) == len(table)


@given(texts)
def test_no_text_makes_a_parser_raise_something_else(text: str) -> None:
    parse_record(text)
    with suppress(BuildError):
        parse_metadata(text)


@given(
    st.lists(
        st.tuples(field_names, st.lists(one_line, min_size=1, max_size=3)), min_size=1, max_size=6
    ),
    st.one_of(st.none(), texts.filter(lambda text: "\r" not in text)),
)
def test_metadata_gives_back_its_fields(
    fields: list[tuple[str, list[str]]], description: str | None
) -> None:
    expected = [
        Field(name, "\n".join([lines[0].strip(), *(f" {line}" for line in lines[1:])]))
        for name, lines in fields
    ]
    text = "".join(f"{field.name}: {field.value}\n" for field in expected)
    if description is not None:
        text += f"\n{description}"
    found, below = parse_metadata(text)
    assert found == expected
    assert below == (description or "")


def entry_of(folder: str, packed: bytes, content: bytes) -> tuple[Path, ZipEntry]:
    """An archive with one member, whose compressed bytes are given."""
    data = zipped({"a": packed}, ZIP_STORED)
    path = Path(folder) / WHEEL
    path.write_bytes(data)
    with path.open("rb") as file:
        (entry,) = read_directory(file).entries
    return path, entry._replace(method=8, size=len(content), crc=zlib.crc32(content))


@given(st.one_of(small, repeated), st.integers(0, 9), st.integers(0, 4), st.data())
@settings(max_examples=examples(50))
def test_whatever_was_deflated_comes_out_again(
    content: bytes, level: int, strategy: int, data: st.DataObject
) -> None:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    packed = packer.compress(content) + packer.flush()
    cut = data.draw(st.integers(0, len(packed)))
    with TemporaryDirectory() as folder:
        path, entry = entry_of(folder, packed, content)
        with path.open("rb") as file:
            assert bytes(whole(reader_of(file), entry)) == content
            assert b"".join(pieces(reader_of(file), entry)) == content
            if cut < len(packed):
                short = entry._replace(stored=cut)
                with pytest.raises(BadDataError):
                    whole(reader_of(file), short)


@given(st.binary(max_size=500))
def test_laws_of_every_target_hold(data: bytes) -> None:
    for target in (fuzz_device, fuzz_elf, fuzz_foreign, fuzz_texts, fuzz_zip):
        target.try_one(data)
