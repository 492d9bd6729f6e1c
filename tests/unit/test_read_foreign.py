"""Programs and libraries of macOS and Windows."""

import os
import struct
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from torchyard.package.contents import Binary, Contents, Fault, FaultKind
from torchyard.package.limits import Limits
from torchyard.package.read import read_package

ARM64, X86_64 = 0x0100000C, 0x01000007
DYLIB = 6


def command(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<II", kind, 8 + len(body)) + body


def dylib(kind: int, name: str) -> bytes:
    return command(kind, struct.pack("<IIII", 24, 0, 0, 0) + name.encode() + b"\0")


def macho(cpu: int = ARM64, system: int = 11 << 16, filler: int = 0) -> bytes:
    """A library that defines `_f` and uses `_g`, made by hand."""
    names = b"\0_f\0_g\0"
    symbols = struct.pack("<IBBHQ", 1, 0x0F, 1, 0, 64) + struct.pack("<IBBHQ", 4, 0x01, 0, 0x100, 0)
    commands = [
        dylib(0xD, "@rpath/libx.dylib"),
        dylib(0xC, "@rpath/libc10.dylib"),
        dylib(0xC, "/usr/lib/libSystem.B.dylib"),
        command(0x8000001C, struct.pack("<I", 12) + b"@loader_path/.\0"),
        command(0x8000001C, struct.pack("<I", 12) + b"/opt/lib\0"),
        command(0x32, struct.pack("<IIII", 1, system, system, 0)),
        command(0x1B, bytes(range(16))),
    ]
    exports = b"\0\1_f\0\6\2\0\x40\0"
    place = 32 + sum(map(len, commands)) + 16 + 24 + 72
    length = len(exports) + 32 + len(names) + filler
    commands.append(command(0x80000033, struct.pack("<II", place, len(exports))))
    start = place + len(exports)
    commands.append(command(2, struct.pack("<IIII", start, 2, start + 32, len(names))))
    row = (b"__LINKEDIT", place, length, place, length, 7, 1, 0, 0)
    commands.append(command(0x19, struct.pack("<16sQQQQiiII", *row)))
    body = b"".join(commands)
    head = struct.pack("<IIIIIIII", 0xFEEDFACF, cpu, 0, DYLIB, len(commands), len(body), 0, 0)
    return head + body + exports + symbols + names + bytes(filler)


def fat(*parts: tuple[int, bytes]) -> bytes:
    head = struct.pack(">II", 0xCAFEBABE, len(parts))
    content = b""
    for cpu, part in parts:
        place = 4096 + len(content)
        head += struct.pack(">IIIII", cpu, 0, place, len(part), 12)
        content += part + bytes(-len(part) % 4096)
    return head + bytes(4096 - len(head)) + content


def windows_program(name: str) -> bytes:
    """One of those that distlib, and with it pip, puts in front of scripts."""
    return Path(str(distribution("distlib").locate_file(f"distlib/{name}"))).read_bytes()


def contents_of(data: bytes, folder: Path, limits: Limits | None = None) -> Contents:
    path = folder / "x.whl"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("x/lib", data)
    return read_package(path, limits=limits or Limits())


def binary_of(data: bytes, folder: Path) -> Binary:
    contents = contents_of(data, folder)
    assert contents.faults == ()
    binary = contents.files["x/lib"].binary
    assert binary is not None
    return binary


@pytest.mark.parametrize("filler", [0, 9 << 20])
def test_a_library_of_macos(tmp_path: Path, filler: int) -> None:
    binary = binary_of(macho(filler=filler), tmp_path)
    assert (binary.format, binary.machine) == ("mach-o", "aarch64")
    assert binary.soname == "@rpath/libx.dylib"
    assert binary.needed == ("@rpath/libc10.dylib", "/usr/lib/libSystem.B.dylib")
    assert binary.rpath == "@loader_path/.:/opt/lib"
    assert (binary.exports, binary.imports) == (b"f\0", b"g\0")
    assert binary.minimum_system == "11.0"
    assert binary.build_id == bytes(range(16)).hex()


def test_a_library_for_two_machines(tmp_path: Path) -> None:
    parts = (X86_64, macho(X86_64, 10 << 16 | 13 << 8)), (ARM64, macho())
    binary = binary_of(fat(*parts), tmp_path)
    assert binary.machine == "x86_64,aarch64"
    assert binary.minimum_system == "10.13"
    assert (binary.exports, binary.imports) == (b"f\0", b"g\0")


@pytest.mark.parametrize(
    ("name", "machine"),
    [("t64.exe", "x86_64"), ("t32.exe", "i686"), ("t64-arm.exe", "aarch64")],
)
def test_a_program_of_windows(tmp_path: Path, name: str, machine: str) -> None:
    binary = binary_of(windows_program(name), tmp_path)
    assert (binary.format, binary.machine) == ("pe", machine)
    assert binary.needed == ("KERNEL32.dll", "SHLWAPI.dll")
    assert b"CreateProcessW\0" in binary.imports
    assert binary.sections[".text"]


PROGRAM = windows_program("t64.exe")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(
            macho()[:-1], "is damaged: its segment __LINKEDIT is beyond its end", id="cut"
        ),
        pytest.param(macho()[:60], "is damaged: it has 0 of 10 load commands", id="commands"),
        pytest.param(macho()[:16], "is damaged: ", id="header"),
        pytest.param(fat((ARM64, macho()))[:4300], "is damaged: ", id="fat"),
        pytest.param(PROGRAM[:-4000], "is damaged: its section ", id="pe"),
        pytest.param(PROGRAM[:300], "is damaged: ", id="pe header"),
    ],
)
def test_a_damaged_file_is_a_fault(tmp_path: Path, data: bytes, what: str) -> None:
    (fault,) = contents_of(data, tmp_path).faults
    assert (fault.kind, fault.member) == (FaultKind.BINARY, "x/lib")
    assert fault.what.startswith(what)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    limits = Limits(foreign=100)
    what = f"is damaged: its {len(macho())} bytes exceed the limit for such files"
    assert contents_of(macho(), tmp_path, limits).faults == (
        Fault(FaultKind.BINARY, "x/lib", what),
    )


@pytest.mark.parametrize(
    "data",
    [b"MZ", b"MZ" + bytes(100), b"\xca\xfe\xba\xbe\0\0\0\x34" + bytes(99), b"\xfe\xed"],
)
def test_what_begins_alike_but_is_something_else(tmp_path: Path, data: bytes) -> None:
    contents = contents_of(data, tmp_path)
    assert contents.faults == ()
    assert contents.files["x/lib"].binary is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(
    st.sampled_from([macho(), fat((ARM64, macho())), PROGRAM[:5000]]),
    st.lists(st.tuples(st.integers(8, 700), st.integers(0, 255)), max_size=6),
)
def test_changed_bytes_are_at_most_a_fault(
    tmp_path: Path, data: bytes, changes: list[tuple[int, int]]
) -> None:
    changed = bytearray(data)
    for place, value in changes:
        changed[place % len(changed)] = value
    faults = contents_of(bytes(changed), tmp_path).faults
    assert {fault.kind for fault in faults} <= {FaultKind.BINARY}


def test_lief_is_not_imported_without_need(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\5\6" + bytes(18))
    code = f"""
import sys, pathlib
from torchyard.package.read import read_package
read_package(pathlib.Path({os.fspath(tmp_path / "x.zip")!r}))
assert not {{"lief", "tempfile", "torchyard.package.conda.read"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
