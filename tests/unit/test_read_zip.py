"""Zip archives: whatever contradicts itself, or could be read in two ways, is told."""

import struct
import zlib
from pathlib import Path

import pytest
from tests.support.made_elf import Made as Elf
from tests.support.made_elf import make_elf
from tests.support.made_zip import MAX_16, MAX_32, End, Made, make_zip

from torchyard.errors import HostError, UsageError
from torchyard.package.contents import Contents, FaultKind
from torchyard.package.limits import Limits
from torchyard.package.members import is_kept
from torchyard.package.read import read_package
from torchyard.package.zip.directory import read_directory
from torchyard.package.zip.inflate import SMALL

A = Made()
B = Made(name=b"b.txt", content=b"another text", method=0)
GOOD = make_zip([A, B])
CRC = zlib.crc32(A.content)
PACKED = len(make_zip([A])) - len(make_zip([A._replace(data=b"")]))
TEXT = len(A.content)


def contents_of(
    data: bytes, folder: Path, *, name: str = "x.whl", limits: Limits | None = None
) -> Contents:
    path = folder / name
    path.write_bytes(data)
    return read_package(path, limits=limits or Limits())


def large(*numbers: int) -> bytes:
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


def test_a_good_archive(tmp_path: Path) -> None:
    contents = contents_of(GOOD, tmp_path)
    assert (contents.file_name, contents.format, contents.size) == ("x.whl", "wheel", len(GOOD))
    assert contents.faults == ()
    assert [(file.name, file.size) for file in contents.files.values()] == [
        ("a.txt", TEXT),
        ("b.txt", 12),
    ]
    assert contents.files["a.txt"].digest == (
        "14fdd6652761830a2ce9304a8142dd5647cc7f8335bc1a28ebe4edb334e14d4a"
    )


def test_the_directory_tells_where_bytes_are(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(GOOD)
    with path.open("rb") as file:
        directory = read_directory(file)
    first, second = directory.entries
    assert (first.header, first.data, first.end) == (0, 35, 35 + PACKED)
    assert (first.raw_name, first.crc, first.mode) == (b"a.txt", CRC, 0o100644)
    assert GOOD[second.data : second.end] == B.content
    assert GOOD[second.end :].startswith(b"PK\1\2")


DESCRIBED = Made(flags=8, own={"crc": 0, "stored": 0, "size": 0})
SIGNED = b"PK\7\x08"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(make_zip([]), id="empty"),
        pytest.param(make_zip([A], End(comment=b"hello")), id="with a comment"),
        pytest.param(make_zip([B._replace(content=GOOD)]), id="an archive in it"),
        pytest.param(make_zip([A], End(large=True)), id="ZIP64 end"),
        pytest.param(
            make_zip([A, B], End(large=True, members=MAX_16, size=MAX_32, start=MAX_32)),
            id="ZIP64 end that is needed",
        ),
        pytest.param(
            make_zip(
                [
                    A._replace(
                        size=MAX_32,
                        stored=MAX_32,
                        extra=large(TEXT, PACKED),
                        own_extra=large(TEXT, PACKED),
                    )
                ]
            ),
            id="ZIP64 sizes",
        ),
        pytest.param(make_zip([A._replace(own_extra=large(TEXT, PACKED))]), id="sizes repeated"),
        *(
            pytest.param(
                make_zip(
                    [DESCRIBED._replace(descriptor=sign + struct.pack(shape, CRC, PACKED, TEXT)), B]
                ),
                id=f"descriptor {sign!r} {shape}",
            )
            for sign in (SIGNED, b"")
            for shape in ("<III", "<IQQ")
        ),
        *(
            pytest.param(
                make_zip(
                    [
                        DESCRIBED._replace(
                            content=b"", method=0, descriptor=sign + bytes(struct.calcsize(shape))
                        ),
                        B,
                    ]
                ),
                id=f"descriptor {sign!r} {shape} of nothing",
            )
            for sign in (SIGNED, b"")
            for shape in ("<III", "<IQQ")
        ),
        pytest.param(make_zip([Made(name="ä".encode(), flags=0x800)]), id="a name in UTF-8"),
        pytest.param(
            make_zip([Made(name=b"d/", content=b"", method=0), Made(name=b"d/x")]), id="a directory"
        ),
        pytest.param(make_zip([Made(content=b"")]), id="an empty file"),
        pytest.param(make_zip([Made(name=b"a..b/...c/.d")]), id="harmless dots"),
    ],
)
def test_what_is_right(tmp_path: Path, data: bytes) -> None:
    assert contents_of(data, tmp_path).faults == ()


S, N, X, C = FaultKind.STRUCTURE, FaultKind.NAME, FaultKind.BOMB, FaultKind.CONTENT


@pytest.mark.parametrize(
    ("data", "kind", "what"),
    [
        pytest.param(b"", S, "no end record", id="nothing"),
        pytest.param(b"no zip archive at all" * 9, S, "no end record", id="something else"),
        pytest.param(GOOD[:-30], S, "no end record", id="cut off"),
        pytest.param(GOOD[40:], S, "is cut off", id="beginning missing"),
        pytest.param(GOOD[:40] + GOOD[41:], S, "is cut off", id="one byte missing"),
        pytest.param(b"#!python\n" + GOOD, S, "9 bytes are before", id="something in front"),
        pytest.param(GOOD + b"more", S, "4 bytes follow the end record", id="something after"),
        pytest.param(GOOD + GOOD, S, "bytes are before", id="two archives"),
        pytest.param(
            make_zip([A], End(comment=GOOD)), S, "bytes are before", id="one in the comment"
        ),
        pytest.param(
            make_zip([A], End(comment=b"PK\5\6" + bytes(40))),
            S,
            "a second end record",
            id="half of one",
        ),
        pytest.param(
            make_zip([A], End(comment_size=9)), S, "which declares 9", id="comment missing"
        ),
        pytest.param(
            make_zip([A], End(members=2)),
            S,
            "has 1 members, but the archive's end declares 2",
            id="count",
        ),
        pytest.param(
            make_zip([A], End(size=55, before=b"????")),
            S,
            "other data than a member",
            id="size of the directory",
        ),
        pytest.param(
            make_zip([A], End(start=3)), S, "bytes are before", id="place of the directory"
        ),
        pytest.param(make_zip([A], End(disk=1)), S, "one of several parts", id="parts"),
        pytest.param(
            make_zip([A], End(before=b"????")), S, "4 bytes are before", id="after the directory"
        ),
        pytest.param(
            make_zip([A], End(start=MAX_32)),
            S,
            "refers to a missing ZIP64 record",
            id="no ZIP64 record",
        ),
        pytest.param(
            make_zip([A], End(large=True, members=3)),
            S,
            "has 3 where its ZIP64 record has 1",
            id="two counts",
        ),
        pytest.param(make_zip([A._replace(disk=1)]), S, "on another disk", id="disk"),
        pytest.param(
            make_zip([A._replace(size=MAX_32)]), S, "in its ZIP64 field", id="no ZIP64 size"
        ),
        pytest.param(
            make_zip([A._replace(extra=large(5))]), S, "unused numbers", id="ZIP64 size too many"
        ),
        pytest.param(
            make_zip([A._replace(extra=large() * 2)]), S, "more than one ZIP64", id="ZIP64 twice"
        ),
        pytest.param(
            make_zip([A._replace(extra=b"\1\0\xff\0")]),
            S,
            "truncated extra fields",
            id="extra",
        ),
        pytest.param(
            make_zip([A._replace(own_extra=b"??")]),
            S,
            "truncated extra fields",
            id="own extra",
        ),
        pytest.param(make_zip([A._replace(extra=b"up\1\0?")]), S, "second name", id="another name"),
        pytest.param(
            make_zip([A._replace(own={"name": b"c.txt"})]),
            S,
            "the name b'c.txt' in its own",
            id="own name",
        ),
        pytest.param(
            make_zip([A._replace(own={"method": 0})]), S, "the method 0 in its own", id="own method"
        ),
        pytest.param(
            make_zip([A._replace(own={"flags": 2})]), S, "the flags 2 in its own", id="own flags"
        ),
        pytest.param(
            make_zip([A._replace(own={"crc": 7})]), S, "the CRC 7 in its own", id="own crc"
        ),
        pytest.param(
            make_zip([A._replace(own={"size": 7})]), S, "the size 7 in its own", id="own size"
        ),
        pytest.param(
            make_zip([A._replace(own={"stored": 7})]),
            S,
            "the stored size 7 in its",
            id="own stored size",
        ),
        pytest.param(
            make_zip([DESCRIBED]), S, "numbers that contradict the directory", id="no descriptor"
        ),
        pytest.param(
            make_zip([DESCRIBED._replace(descriptor=SIGNED + bytes(12))]),
            S,
            "numbers that contradict",
            id="descriptor",
        ),
        pytest.param(make_zip([A._replace(flags=1)]), S, "is encrypted", id="encrypted"),
        pytest.param(make_zip([A._replace(flags=0x20)]), S, "or a patch", id="patch"),
        pytest.param(make_zip([A._replace(method=93)]), S, "by method 93", id="method"),
        pytest.param(make_zip([B._replace(size=5)]), S, "as 12 bytes instead of 5", id="stored"),
        pytest.param(
            make_zip([A, B._replace(stored=500, size=500)]),
            S,
            "beyond the archive's data",
            id="too long",
        ),
        pytest.param(make_zip([A._replace(header=5000)]), S, "its own header", id="far away"),
        pytest.param(
            make_zip([A, B._replace(header=1)]), S, "its own header, at 1", id="elsewhere"
        ),
        pytest.param(
            make_zip([A, A._replace(name=b"b.txt", header=0)]), S, "overlaps", id="overlap"
        ),
        pytest.param(
            make_zip([A, B._replace(before=b"hidden")]), S, "6 bytes in front of it", id="gap"
        ),
        pytest.param(
            make_zip([A._replace(descriptor=b"hi")]),
            S,
            "2 bytes in front of the dir",
            id="gap at the end",
        ),
        pytest.param(
            make_zip([Made(name=b"d/")]), S, "is a directory, but has", id="directory with data"
        ),
        pytest.param(make_zip([A, A]), N, "is there twice", id="twice"),
        pytest.param(make_zip([A, Made(name=b"A.txt")]), N, "if case is ignored", id="case"),
        pytest.param(
            make_zip([Made(name=b"a"), Made(name=b"a/b")]),
            N,
            "both a file and a directory",
            id="both",
        ),
        pytest.param(make_zip([Made(name=b"/etc/passwd")]), N, "absolute", id="absolute"),
        pytest.param(make_zip([Made(name=b"C:/x")]), N, "absolute", id="drive"),
        pytest.param(make_zip([Made(name=b"a/../../x")]), N, "leads out", id="dots"),
        pytest.param(make_zip([Made(name=b"..")]), N, "leads out", id="only dots"),
        pytest.param(make_zip([Made(name=b"..\\x")]), N, "backslash", id="backslash"),
        pytest.param(make_zip([Made(name=b"a.py\0.txt")]), N, "control characters", id="zero"),
        pytest.param(make_zip([Made(name=b"a//b")]), N, "empty parts", id="empty parts"),
        pytest.param(make_zip([Made(name=b"./b")]), N, "empty parts", id="dot"),
        pytest.param(make_zip([Made(name=b"")]), N, "no name", id="no name"),
        pytest.param(
            make_zip([Made(name=b"\xff", flags=0x800)]),
            N,
            "flagged as UTF-8, but is not",
            id="not UTF-8",
        ),
        pytest.param(make_zip([Made(name=b"\xe4")]), N, "is not ASCII", id="not ASCII"),
        pytest.param(make_zip([Made(content=b"/etc", mode=0o120777)]), N, "is a link", id="link"),
        pytest.param(
            make_zip([Made(mode=0o060666)]), N, "is a link or a special file", id="device"
        ),
        pytest.param(
            make_zip([A._replace(size=TEXT - 1)]), X, f"more than {TEXT - 1} bytes", id="longer"
        ),
        pytest.param(make_zip([A._replace(size=0)]), X, "more than 0 bytes", id="not empty"),
        pytest.param(
            make_zip([A._replace(size=TEXT + 1)]), C, f"{TEXT} bytes instead of", id="shorter"
        ),
        pytest.param(make_zip([A._replace(crc=1)]), C, "does not match its checksum", id="crc"),
        pytest.param(make_zip([A._replace(data=b"\xff" * 9)]), C, "can't be unpacked", id="broken"),
        pytest.param(make_zip([A._replace(data=b"")]), C, "can't be unpacked", id="missing"),
    ],
)
def test_what_is_wrong(tmp_path: Path, data: bytes, kind: FaultKind, what: str) -> None:
    faults = contents_of(data, tmp_path).faults
    assert [fault for fault in faults if fault.kind is kind and what in fault.what], faults


BIG = Made(content=bytes(range(256)) * (SMALL // 128))


@pytest.mark.parametrize(
    ("member", "kind", "what"),
    [
        pytest.param(
            BIG._replace(size=len(BIG.content) - 1), X, "unpacks to more than", id="longer"
        ),
        pytest.param(BIG._replace(size=len(BIG.content) + 1), C, "instead of", id="shorter"),
        pytest.param(BIG._replace(crc=1), C, "does not match its checksum", id="crc"),
        pytest.param(
            BIG._replace(data=make_zip([BIG])[35:-200]), C, "can't be unpacked", id="cut off"
        ),
        pytest.param(BIG._replace(data=b"\xff" * 999), C, "can't be unpacked", id="broken"),
    ],
)
def test_what_is_wrong_with_large_members(
    tmp_path: Path, member: Made, kind: FaultKind, what: str
) -> None:
    faults = contents_of(make_zip([member]), tmp_path).faults
    assert [(fault.kind, fault.member) for fault in faults] == [(kind, "a.txt")]
    assert what in faults[0].what


def test_a_library_can_not_hide_behind_empty_blocks(tmp_path: Path) -> None:
    """All of what is read at once unpacks to a single byte."""
    library = make_elf(Elf(soname="libx.so")) + bytes(2 * SMALL)
    stream = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = b"\0\0\0\xff\xff" * 13106 + b"\0\1\0\xfe\xff" + library[:1]
    packed += stream.compress(library[1:]) + stream.flush()
    contents = contents_of(make_zip([Made(content=library, data=packed)]), tmp_path)
    assert contents.faults == ()
    assert contents.files["a.txt"].binary is not None


def test_no_more_is_unpacked_than_was_said(tmp_path: Path) -> None:
    """Some bytes that unpack to 64 MB say that they are 2 MB; little more is unpacked."""
    stream = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = stream.compress(bytes(64 << 20)) + stream.flush()
    member = Made(data=packed, size=2 << 20)
    faults = contents_of(make_zip([member]), tmp_path).faults
    assert [fault.what for fault in faults] == ["unpacks to more than 2097152 bytes"]


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (Limits(harmless=1000, ratio=100), "a.txt unpacks to 100000 bytes, from "),
        (Limits(total=99_999), " its members are larger than any package"),
        (Limits(directory=10), " the directory has 51 bytes"),
        (Limits(members=0), " the archive has more than 0 members"),
    ],
)
def test_bombs_are_not_unpacked(tmp_path: Path, limits: Limits, what: str) -> None:
    data = make_zip([Made(content=bytes(100_000))])
    contents = contents_of(data, tmp_path, limits=limits)
    fault = contents.faults[0]
    assert fault.kind is FaultKind.BOMB
    assert f"{fault.member} {fault.what}".startswith(what)
    assert not any(file.digest for file in contents.files.values())


def test_the_same_bytes_can_not_be_many_members(tmp_path: Path) -> None:
    members = [A, *[A._replace(name=b"%d" % number, header=0) for number in range(50)]]
    contents = contents_of(make_zip(members), tmp_path)
    assert sum(bool(file.digest) for file in contents.files.values()) == 1


def test_faults_are_told_up_to_a_number(tmp_path: Path) -> None:
    members = [Made(name=b"../%d" % number) for number in range(30)]
    faults = contents_of(make_zip(members), tmp_path, limits=Limits(faults=10)).faults
    assert [fault.what for fault in faults[9:]] == [
        "leads out of the package",
        "there are more faults than listed",
    ]


def test_links_in_zip_archives_may_lead_to_what_is_in_them(tmp_path: Path) -> None:
    inside = Made(name=b"lib/a.so", content=b"../a.txt", mode=0o120777)
    outside = Made(name=b"lib/b.so", content=b"../../b", mode=0o120777)
    contents = contents_of(make_zip([A, inside, outside]), tmp_path, name="x.zip")
    assert [(fault.kind, fault.member) for fault in contents.faults] == [(N, "lib/b.so")]
    assert contents.files["lib/a.so"].link == "../a.txt"


def test_modes_count_wherever_an_archive_was_made(tmp_path: Path) -> None:
    link = bytearray(make_zip([A._replace(mode=0o120777)]))
    tool = bytearray(make_zip([A._replace(mode=0o100755)]))
    for data in (link, tool):
        data[data.index(b"PK\1\2") + 5] = 0  # MS-DOS
    assert "is a link" in contents_of(bytes(link), tmp_path).faults[0].what
    assert contents_of(bytes(tool), tmp_path).files["a.txt"].executable


def test_small_files_that_speak_of_the_package_are_kept(tmp_path: Path) -> None:
    names = ["x-1.dist-info/RECORD", "t/share/T.cmake", "t/version.py", "t/__config__.py", "a.pth"]
    names += ["t/_version.py", "build-version", "lib/x.pc", "x-1.dist-info/licenses/a/LICENSE"]
    others = ["t/__init__.py", "t/conversion.py", "t/info/x", "t/x.cmake.in", "README"]
    members = [Made(name=name.encode(), content=name.encode()) for name in names + others]
    contents = contents_of(make_zip(members), tmp_path)
    assert contents.texts == {name: name.encode() for name in names}
    limits = Limits(text=4)
    assert contents_of(make_zip(members), tmp_path, limits=limits).texts == {}
    contents = contents_of(make_zip(members), tmp_path, limits=Limits(texts=36))
    assert list(contents.texts) == names[:2]
    assert {fault.kind for fault in contents.faults} == {X}


def test_names_that_no_system_bears_take_no_time() -> None:
    assert is_kept("config" * 600 + ".py")
    assert not any(is_kept("config" * 10_000 + str(number)) for number in range(1000))


def test_progress_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(GOOD)
    told: list[int] = []
    read_package(path, progress=told.append)
    assert told == [PACKED, 12]
    path.write_bytes(make_zip([Made(content=bytes(range(256)) * 9000, method=0)]))
    told.clear()
    read_package(path, progress=told.append)
    assert len(told) > 5
    assert sum(told) == 256 * 9000


def test_what_is_no_package_at_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"`x\.txt` is not a package"):
        read_package(tmp_path / "x.txt")
    with pytest.raises(HostError, match=r"x\.whl` can't be read: No such file"):
        read_package(tmp_path / "x.whl")
