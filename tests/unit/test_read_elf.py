"""ELF files as they pass by: each of their parts, wherever it lies, and whatever it claims."""

import struct
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import _core
from tests.support.made_elf import DT, Made, make_elf

from torchyard.package import members
from torchyard.package.contents import Binary, Contents, Fault, FaultKind, VersionNeed
from torchyard.package.elf import stream
from torchyard.package.elf.file import read_elf
from torchyard.package.elf.image import DAMAGED
from torchyard.package.elf.stream import ElfStream, NotKept
from torchyard.package.elf.symbols import split_names
from torchyard.package.limits import LIMITS, Limits
from torchyard.package.read import read_package

FULL = Made(
    soname="libx.so.1",
    needed=("liba.so", "libc.so.6"),
    rpath="/a:/b",
    runpath="$ORIGIN",
    symbols=[
        ("used", 1, 0, 0),
        ("maybe", 2, 0, 0),
        ("f", 1, 0, 7),
        ("weak", 2, 3, 7),
        ("one", 10, 0, 7),
        ("hidden", 1, 2, 7),
        ("internal", 1, 1, 7),
        ("local", 0, 0, 7),
    ],
    needs={"libc.so.6": ["GLIBC_2.17", "GLIBC_2.34"], "liba.so": ["A_1"]},
    defines=("libx.so.1", "X_1", "X_2"),
    build_id=bytes(range(20)),
)


def binary_of(data: bytes, step: int = 1 << 16, limits: Limits = LIMITS) -> Binary:
    stream = ElfStream(len(data), limits)
    for place in range(0, len(data), step):
        stream.feed(data[place : place + step])
    return stream.binary()


def contents_of(data: bytes, folder: Path, *, limits: Limits = LIMITS) -> Contents:
    path = folder / "x.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("lib/x.so", data)
    return read_package(path, limits=limits)


@pytest.mark.parametrize("sections", [True, False])
@pytest.mark.parametrize("names_last", [True, False])
@pytest.mark.parametrize("step", [64, 1000, 1 << 20])
def test_everything_that_a_loader_sees(sections: bool, names_last: bool, step: int) -> None:
    made = FULL._replace(sections=sections, names_last=names_last, filler=bytes(5000))
    binary = binary_of(make_elf(made), step)
    assert (binary.format, binary.machine, binary.dynamic) == ("elf", "x86_64", True)
    assert (binary.soname, binary.needed) == ("libx.so.1", ("liba.so", "libc.so.6"))
    assert (binary.rpath, binary.runpath) == ("/a:/b", "$ORIGIN")
    assert binary.needs == (
        VersionNeed("libc.so.6", "GLIBC_2.17"),
        VersionNeed("libc.so.6", "GLIBC_2.34"),
        VersionNeed("liba.so", "A_1"),
    )
    assert binary.defines == ("X_1", "X_2")
    assert binary.build_id == bytes(range(20)).hex()
    assert binary.imports == b"used\0maybe\0"
    assert binary.exports == b"f\0weak\0one\0"
    assert (binary.executable_stack, binary.text_relocations, binary.gnu_hash) == (0, 0, 1)
    assert bool(binary.sections) is sections
    if sections:
        assert binary.sections[".dynsym"] == 24 * 9


@pytest.mark.parametrize(("stack", "executable"), [(6, False), (7, True), (None, True)])
def test_a_stack_that_must_be_executable(stack: int | None, executable: bool) -> None:
    assert binary_of(make_elf(Made(stack=stack))).executable_stack is executable


@pytest.mark.parametrize("tag", [(DT["textrel"], 0), (DT["flags"], 4)])
def test_text_relocations(tag: tuple[int, int]) -> None:
    assert binary_of(make_elf(Made(tags=[tag]))).text_relocations
    assert not binary_of(make_elf(Made(tags=[(DT["flags"], 8)]))).text_relocations


def test_sections_may_have_no_names() -> None:
    data = bytearray(make_elf(FULL))
    data[62:64] = bytes(2)  # which section has them
    binary = binary_of(bytes(data))
    assert binary.soname == "libx.so.1"
    assert binary.sections == {}


def test_a_file_without_gnu_hash() -> None:
    assert not binary_of(make_elf(Made(gnu_hash=False))).gnu_hash


def test_a_file_that_nobody_loads() -> None:
    binary = binary_of(make_elf(Made(dynamic=False, symbols=[("f", 1, 0, 7)], stack=None)))
    assert not binary.dynamic
    assert (binary.exports, binary.executable_stack, binary.gnu_hash) == (b"", False, True)


def test_names_in_the_middle_of_a_large_file_take_a_second_pass(tmp_path: Path) -> None:
    first = make_elf(FULL._replace(filler=bytes(20 << 20), names_last=True, sections=False))
    data = bytearray(first + bytes(20 << 20))
    with pytest.raises(NotKept):
        binary_of(bytes(data))
    contents = contents_of(bytes(data), tmp_path)
    assert contents.faults == ()
    assert contents.files["lib/x.so"].binary == binary_of(first)


def test_a_file_on_disk_and_one_in_a_package_are_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(make_elf(FULL))
    elf = read_elf(tmp_path / "x.so")
    binary = binary_of(make_elf(FULL))
    assert elf is not None
    assert elf.versions == tuple(need.version for need in binary.needs)
    for field in ("machine", "dynamic", "soname", "needed", "rpath", "runpath", "build_id"):
        assert getattr(elf, field) == getattr(binary, field)


def test_names_of_a_pytorch_without_optimisation_fit(tmp_path: Path) -> None:
    """Those of libtorch_cuda.so take 35 MB if nothing is inlined."""
    names = [f"f{number:09}" * 3_600 for number in range(970)]
    text = "".join(f".globl {name}\n{name}:\n" for name in names)
    library = tmp_path / "x.so"
    assembler = ["gcc", "-shared", "-nostdlib", "-s", "-x", "assembler", "-", "-o", str(library)]
    subprocess.run(assembler, input=text.encode(), check=True)
    data = library.read_bytes()
    read = ElfStream(len(data), LIMITS, wanted=((0, len(data)),))
    read.feed(data)
    assert len([*split_names(read.binary().exports)]) == len(names)


# ------------------------------------------------------------------------------------- hostile


def changed(place: int, shape: str, *numbers: int) -> Callable[[bytearray], None]:
    return lambda data: struct.pack_into(shape, data, place, *numbers)


def loop_of_versions(data: bytearray) -> None:
    """A chain that claims to be long, and leads to itself."""
    place = data.index(struct.pack("<QQ", DT["verneednum"], 2))
    struct.pack_into("<Q", data, place + 8, 1 << 40)


def loop_of_libraries(data: bytearray) -> None:
    place = data.index(struct.pack("<QQ", DT["verneednum"], 2))
    struct.pack_into("<Q", data, place + 8, 60000)
    (library,) = struct.unpack_from("<Q", data, data.index(struct.pack("<Q", DT["verneed"])) + 8)
    struct.pack_into("<H", data, library + 2, 60000)
    struct.pack_into("<I", data, library + 12, 0)
    struct.pack_into("<I", data, library + 16 + 12, 0)


def far_names(data: bytearray) -> None:
    place = data.index(struct.pack("<Q", DT["strsz"]))
    struct.pack_into("<Q", data, place + 8, 1 << 62)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(changed(32, "<Q", 1 << 63), id="program headers far away"),
        pytest.param(changed(56, "<H", 0xFFFF), id="too many program headers"),
        pytest.param(changed(54, "<H", 1), id="program headers too short"),
        pytest.param(changed(40, "<Q", 1 << 40), id="section headers far away"),
        pytest.param(changed(60, "<H", 0xFFFF), id="too many sections"),
        pytest.param(changed(62, "<H", 0xFF00), id="no names of sections"),
        pytest.param(loop_of_versions, id="an endless chain of versions"),
        pytest.param(loop_of_libraries, id="a chain of libraries that stands still"),
        pytest.param(far_names, id="names without an end"),
        pytest.param(lambda data: data.__delitem__(slice(300, None)), id="cut off"),
        pytest.param(lambda data: data.__delitem__(slice(5, None)), id="nothing but a magic"),
    ],
)
def test_a_damaged_file_is_a_fault(tmp_path: Path, damage: Callable[[bytearray], None]) -> None:
    data = bytearray(make_elf(FULL))
    damage(data)
    contents = contents_of(bytes(data), tmp_path)
    assert [(fault.kind, fault.member) for fault in contents.faults] == [
        (FaultKind.BINARY, "lib/x.so")
    ]
    assert contents.files["lib/x.so"].binary is None
    assert contents.files["lib/x.so"].digest


def test_names_that_are_used_over_and_over(tmp_path: Path) -> None:
    """Few bytes can be very many names: two thousand symbols share one of 50,000 bytes."""
    long = "x" * 50_000
    data = bytearray(make_elf(Made(symbols=[(long, 1, 0, 7), *[("", 1, 0, 7)] * 2000])))
    start = 64 + 56 * 4
    for number in range(2002):
        struct.pack_into("<I", data, start + 24 * number, 1)
    with pytest.raises(ValueError, match="names of its symbols are too long"):
        binary_of(bytes(data))


def test_symbols_of_all_libraries_together_are_bounded(tmp_path: Path) -> None:
    limits = Limits(tables=10)
    contents = contents_of(make_elf(FULL), tmp_path, limits=limits)
    what = "exceeds the limit of symbols in a package"
    assert contents.faults == (Fault(FaultKind.BOMB, "lib/x.so", what),)


@given(
    st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 255)), max_size=12),
    st.integers(0, 1500),
    st.sampled_from([16, 700, 1 << 16]),
)
def test_whatever_bytes_are_changed_nothing_else_is_raised(
    changes: list[tuple[int, int]], size: int, step: int
) -> None:
    data = bytearray(make_elf(FULL))
    for place, value in changes:
        data[place % len(data)] = value
    with suppress(*DAMAGED):
        binary_of(bytes(data[: max(size, 5)] if size % 3 else data), step)


def test_a_sparse_library_of_hundreds_of_megabytes(tmp_path: Path) -> None:
    """Stored, as its zero bytes would look like a bomb; it is read without a second pass."""
    path = tmp_path / "x.zip"
    with ZipFile(path, "w", ZIP_STORED) as archive, archive.open("x.so", "w") as member:
        first = make_elf(FULL)
        member.write(first)
        for _ in range(200):
            member.write(bytes(1 << 20))
    contents = read_package(path)
    assert contents.faults == ()
    assert contents.files["x.so"].binary == binary_of(first)


@pytest.mark.parametrize("around", [512, 4096])
def test_tables_far_from_both_ends_are_found_in_a_few_passes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, around: int
) -> None:
    """As in wheels whose symbols lie behind 20 MB of code: they were once called damaged."""
    path = tmp_path / "x-1-py3-none-any.whl"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.write(_core.__file__, "x.so")
    wanted = read_package(path).files["x.so"].binary
    assert wanted is not None
    monkeypatch.setattr(stream, "_HEAD", 512)
    monkeypatch.setattr(stream, "_TAIL", 512)
    monkeypatch.setattr(members, "_AROUND", around)
    assert read_package(path).files["x.so"].binary == wanted
