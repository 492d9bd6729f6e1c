"""Files that are small when packed, and would take hours or gigabytes if they were believed."""

import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest
from tests.support.contents import ABOUT, LIBRARY, METADATA, WHEEL, contents, findings, wheel

from torchyard.checks.compat.undefined import undefined_in
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.subject import Subject
from torchyard.host.zstd import compress
from torchyard.package.contents import Binary, Fault
from torchyard.package.device.scan import DeviceScan
from torchyard.package.elf.stream import ElfStream
from torchyard.package.limits import LIMITS, Faults, Limits
from torchyard.package.members import FoundMembers
from torchyard.package.read import read_package
from torchyard.package.tar_reader import Stream, TarError, tar_members

PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
DT_SYMTAB, DT_GNU_HASH, DT_VERNEED, DT_VERNEEDNUM = 6, 0x6FFFFEF5, 0x6FFFFFFE, 0x6FFFFFFF
MOST_SECONDS = 30.0
MOST_MEMORY = 64 << 20


def elf(segments: list[tuple[int, int, int]], body: bytes, sections: int = 0) -> bytes:
    """A file whose segments, and sections, lie wherever one says."""
    start = 64 + 56 * len(segments)
    counts = (56, len(segments), 64, sections, 1)
    head = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, start if sections else 0, 0, 64, *counts)
    rows = [struct.pack("<IIQQQQQQ", k, 6, at, at, 0, size, size, 8) for k, at, size in segments]
    return b"\x7fELF\2\1\1" + bytes(9) + head + b"".join(rows) + body


def names_of_sections() -> bytes:
    count, length = 4000, 500 << 10
    row = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64 + 64 * count, length + 1, 0, 0, 8, 0)
    return elf([], row * count + b"a" * length + b"\0", count)


def notes() -> bytes:
    count, length = 8000, 500 << 10
    return elf([(PT_NOTE, 64 + 56 * count, length)] * count, bytes(length))


def dynamic_sections() -> bytes:
    count, rows = 4000, struct.pack("<QQ", 1, 0) * 30_000
    return elf([(PT_DYNAMIC, 64 + 56 * count, len(rows))] * count, rows)


def dynamic(rows: list[tuple[int, int]], body: bytes) -> bytes:
    """A file with a dynamic section; all that follows is at 0x200."""
    table = b"".join(struct.pack("<QQ", *row) for row in rows).ljust(0x200 - 176, b"\0")
    return elf([(PT_LOAD, 0, 1 << 30), (PT_DYNAMIC, 176, len(table))], table + body)


def chain_of_symbols() -> bytes:
    body = struct.pack("<IIIII", 1, 0, 0, 0, 0) + bytes(8 << 20)
    return dynamic([(DT_GNU_HASH, 0x200), (DT_SYMTAB, 0x200)], body)


def chain_of_versions() -> bytes:
    first = struct.pack("<HHIII", 1, 0xFFFF, 0, 0, 0)
    return dynamic([(DT_VERNEED, 0x200), (DT_VERNEEDNUM, 1)], first)


def faults_of(data: bytes) -> tuple[Fault, ...]:
    found = FoundMembers(LIMITS, Faults())
    stream = ElfStream(len(data), LIMITS)
    pieces = [data[place : place + (1 << 20)] for place in range(0, len(data), 1 << 20)]
    for piece in pieces:
        stream.feed(piece)
    found.binary("a.so", stream, lambda: pieces)
    return found.faults.all()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        pytest.param(names_of_sections, "its strings are too long", id="names of sections"),
        pytest.param(notes, "", id="notes"),
        pytest.param(dynamic_sections, "more than one dynamic section", id="dynamic sections"),
        pytest.param(chain_of_symbols, "a chain of 65537 links is too long", id="symbols"),
        pytest.param(chain_of_versions, "a chain of 65536 links is too long", id="versions"),
    ],
)
def test_an_elf_file_takes_little_time(make: Callable[[], bytes], what: str) -> None:
    data = make()
    start = time.process_time()
    told = faults_of(data)
    assert time.process_time() - start < MOST_SECONDS
    assert [what in fault.what for fault in told] == [True] * bool(what)


@pytest.mark.parametrize("make", [names_of_sections, dynamic_sections])
def test_an_elf_file_takes_little_memory(make: Callable[[], bytes]) -> None:
    data = make()
    tracemalloc.start()
    faults_of(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_MEMORY


def test_libraries_that_all_load_each_other_take_little_time() -> None:
    """A wheel of a megabyte took hours: what loads each was searched in cubic time."""
    count = 1000
    ring: dict[str, bytes | Binary | None] = {
        f"tiny/lib{number}.so": msgspec.structs.replace(
            LIBRARY,
            soname=f"lib{number}.so",
            needed=(f"lib{(number + 1) % count}.so",),
            imports=b"_Z4gonev\0",
        )
        for number in range(count)
    }
    start = time.process_time()
    found = undefined_in(Subject(wheel(ring), CheckPolicy()))
    assert time.process_time() - start < MOST_SECONDS
    assert len(found) == count


def test_architectures_that_nobody_knows_are_a_fault() -> None:
    scan = DeviceScan()
    for arch in range(2000):
        program = struct.pack("<HHIQIIHHIIIQ", 2, 257, 64, 0, 0, 0, 0, 0, arch, 0, 0, 0)
        scan.feed(struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, 64) + program.ljust(64, b"\0"))
    with pytest.raises(ValueError, match="more than 1000 architectures"):
        scan.found()


def tar_header(kind: bytes, size: bytes) -> bytes:
    block = bytearray(512)
    block[:1], block[124 : 124 + len(size)], block[156:157] = b"a", size, kind
    block[148:156] = b"%06o\0 " % (sum(block) + 8 * 32)
    return bytes(block)


@pytest.mark.parametrize(
    ("pieces", "what"),
    [
        pytest.param([tar_header(b"5", b"")] * 200, "headers take more than", id="members"),
        pytest.param([tar_header(b"0", b"-1000")], "is not a number", id="negative"),
        pytest.param(
            [tar_header(b"x", b"%o" % 5000), b"1" * 5120],
            "is not a number",
            id="digits of a length",
        ),
        pytest.param(
            [tar_header(b"x", b"%o" % 5014), b"5014 size=" + b"1" * 5110, tar_header(b"0", b"")],
            "is not a number",
            id="digits of a size",
        ),
    ],
)
def test_hostile_headers_of_a_tar_archive(pieces: list[bytes], what: str) -> None:
    with pytest.raises(TarError, match=what):
        list(tar_members(Stream(pieces), 64 << 10))


def test_many_archives_in_a_conda_package_have_no_more_members_than_one(tmp_path: Path) -> None:
    path = tmp_path / "a-1-0.conda"
    inside = compress(tar_header(b"0", b"") * 8 + bytes(1024))
    with ZipFile(path, "w") as archive:
        for number in range(8):
            archive.writestr(f"pkg-{number}.tar.zst", inside)
    told = [fault.what for fault in read_package(path, limits=Limits(members=12)).faults]
    assert any("too many members" in what for what in told)


FIELDS = METADATA.partition(b"\n\n")[0]


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        pytest.param("RECORD", b"a\n" * (1 << 20), "record-missing", id="lines"),
        pytest.param("RECORD", b"a,,\n" * (1 << 20), "record-missing", id="rows"),
        pytest.param("METADATA", FIELDS + b"\n a" * (5 << 20), "metadata-valid", id="folded"),
        pytest.param("METADATA", FIELDS + b"\nA:" * (5 << 20), "metadata-valid", id="fields"),
        pytest.param(
            "METADATA", FIELDS + b"\nRequires-Dist: a; " + b"(" * 9999, "metadata-valid", id="deep"
        ),
        pytest.param(
            "WHEEL", WHEEL + b"Tag: a.b.c.d-a.b.c.d-a.b.c.d\n" * 2000, "wheel-tags", id="tags"
        ),
    ],
)
def test_rules_bear_texts_that_never_end(name: str, text: bytes, rule: str) -> None:
    package = wheel({f"{ABOUT}/{name}": text})
    start = time.process_time()
    assert rule in {finding.rule for finding in findings(package)}
    assert time.process_time() - start < MOST_SECONDS


def test_a_rule_tells_only_its_first_findings() -> None:
    package = contents("a.whl", "wheel", {f"{number}.txt": b"" for number in range(3000)})
    told = [finding.what for finding in findings(package) if finding.rule == "top-level"]
    assert len(told) == 1001
    assert sum(what.startswith("there are more than 1000 of these") for what in told) == 1
