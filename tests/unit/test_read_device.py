"""Code for GPUs inside of libraries, wherever the pieces of the file are cut."""

import struct
import zlib
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.made_elf import Made, make_elf

from torchyard.host.zstd import compress
from torchyard.package.contents import DeviceCode
from torchyard.package.device import scan
from torchyard.package.device.scan import DeviceScan
from torchyard.package.elf.stream import ElfStream
from torchyard.package.limits import LIMITS
from torchyard.package.read import read_package

MAGIC = b"\x50\xed\x55\xba"


def program(kind: int, arch: int, size: int, flags: int = 0x11, header: int = 64) -> bytes:
    row = (kind, 0x101, header, size, 0, 0, 8, 1, arch, 0, 0, flags)
    data = struct.pack("<HHIQIIHHIIIQ", *row)
    return data + bytes(header - len(data)) + MAGIC * (size // 4)


def container(*programs: bytes) -> bytes:
    data = b"".join(programs)
    return struct.pack("<4sHHQ", MAGIC, 1, 16, len(data)) + data


def listed(*targets: tuple[str, int]) -> bytes:
    place = 4096
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(targets))
    content = b""
    for target, size in targets:
        data += struct.pack("<QQQ", place, size, len(target)) + target.encode()
        place += size
        content += b"x" * size
    return data + bytes(4096 - len(data)) + content


def packed(data: bytes, version: int, *, zstd: bool) -> bytes:
    inside = compress(data) if zstd else zlib.compress(data)
    head = struct.pack("<4sHH", b"CCOB", version, zstd)
    sizes = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    length = len(head) + struct.calcsize(sizes) + 8 + len(inside)
    numbers = (len(data),) if version == 1 else (length, len(data))
    return head + struct.pack(sizes, *numbers) + bytes(8) + inside


def found(data: bytes, step: int = 1 << 16) -> tuple[DeviceCode, ...]:
    stream = DeviceScan()
    for place in range(0, len(data), step):
        stream.feed(data[place : place + step])
    return stream.found()


def padded(data: bytes, to: int = 4096) -> bytes:
    return data + bytes(-len(data) % to)


NVIDIA = (
    bytes(64)
    + container(program(2, 80, 128), program(2, 90, 64, 0x100011), program(1, 90, 32))
    + MAGIC  # somewhere else, and not followed by a container
    + bytes(12)
    + container(program(2, 80, 8), program(2, 100, 16, 0x1200011, 112), program(2, 75, 8, 0x8011))
    + container(program(64, 99, 16))
    + bytes(7)
)
NVIDIA_CODE = (
    DeviceCode("cubin", "sm_100f", 1, 16),
    DeviceCode("cubin", "sm_75", 1, 8),
    DeviceCode("cubin", "sm_80", 2, 136),
    DeviceCode("cubin", "sm_90a", 1, 64),
    DeviceCode("ptx", "compute_90", 1, 32),
)
HOST = ("host-x86_64-unknown-linux-gnu-", 0)
TARGETS = (
    HOST,
    ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", 5000),
    ("hipv4-amdgcn-amd-amdhsa--gfx942", 300),
)
AMD = bytes(4096) + padded(listed(*TARGETS)) + padded(listed(HOST, TARGETS[2])) + b"_"
AMD_CODE = (DeviceCode("hsaco", "gfx90a:xnack-", 1, 5000), DeviceCode("hsaco", "gfx942", 2, 600))


@given(st.integers(1, 400))
def test_nvidias_programs(step: int) -> None:
    assert found(NVIDIA, step) == NVIDIA_CODE


@given(st.integers(1, 20_000))
def test_amds_programs(step: int) -> None:
    assert found(AMD, step) == AMD_CODE


@pytest.mark.parametrize("step", [77, 4096, 1 << 16])
@pytest.mark.parametrize("zstd", [True, False])
@pytest.mark.parametrize("version", [2, 3])
def test_amds_compressed_programs(version: int, zstd: bool, step: int) -> None:
    data = padded(packed(listed(*TARGETS), version, zstd=zstd))
    codes = found(bytes(4096) + data + data, step)
    assert [(code.kind, code.arch, code.programs) for code in codes] == [
        ("hsaco", "gfx90a:xnack-", 2),
        ("hsaco", "gfx942", 2),
    ]
    assert sum(code.size for code in codes) <= len(data) * 2


def test_amds_oldest_compressed_programs_have_no_size() -> None:
    data = packed(listed(*TARGETS), 1, zstd=False) + bytes(300_000)
    assert found(data) == (AMD_CODE[0], DeviceCode("hsaco", "gfx942", 1, 300))


def test_both_in_one_file_and_after_other_bytes() -> None:
    data = padded(NVIDIA) + AMD[4096:]
    assert set(found(data, 1000)) == {*NVIDIA_CODE, *AMD_CODE}


def test_compute_platforms_say_what_bundles_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    data = listed(("host-x86_64", 0), ("musa-mt-linux--mp_31", 500))
    assert found(data) == ()
    monkeypatch.setattr(scan, "_bundled_kinds", lambda: {b"musa": "mubin"})
    assert found(data) == (DeviceCode("mubin", "mp_31", 1, 500),)


@pytest.mark.parametrize(
    "data",
    [
        MAGIC * 100,
        container(program(2, 80, 64))[:-90],
        struct.pack("<4sHHQ", MAGIC, 1, 16, 1 << 60) + bytes(64),
        struct.pack("<4sHHQ", MAGIC, 1, 16, 1 << 60) + b"\xff" * 99,
        b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 100_000,
        b"CCOB\3\0\1\0" + struct.pack("<QQ", 1 << 60, 1 << 60) + bytes(300_000),
        b"CCOB\2\0\0\0" + struct.pack("<II", 100, 9) + b"\xff" * 300_000,
        b"CCOB" + b"\xff" * 100,
        b"CCOB",
        b"_",
    ],
)
def test_what_only_looks_like_programs(data: bytes) -> None:
    assert found(data, 333) == ()
    assert found(data) == ()


@given(st.binary(max_size=200), st.integers(0, 600), st.integers(1, 300))
def test_no_bytes_are_too_strange(noise: bytes, place: int, step: int) -> None:
    for base in (NVIDIA, AMD):
        data = bytearray(base)
        data[place : place + len(noise)] = noise
        found(bytes(data), step)


def test_a_library_tells_its_programs() -> None:
    unaligned = make_elf(Made(filler=NVIDIA)).index(NVIDIA)
    data = make_elf(Made(filler=bytes(-unaligned % 8) + NVIDIA))
    stream = ElfStream(len(data), LIMITS)
    stream.feed(data)
    assert stream.binary().device == NVIDIA_CODE


@pytest.mark.parametrize("name", ["lib/libcuda_part.so", "lib/libplain.so"])
def test_device_code_is_found_whatever_a_library_is_called(tmp_path: Path, name: str) -> None:
    """A name only tells whether to look for it at once, or when the file passes again."""
    made = Made(needed=("libcudart.so.13",), filler=NVIDIA)
    unaligned = make_elf(made).index(NVIDIA)
    data = make_elf(made._replace(filler=bytes(-unaligned % 8) + NVIDIA))
    with ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(name, data)
    binary = read_package(tmp_path / "x.zip").files[name].binary
    assert binary is not None
    assert binary.device == NVIDIA_CODE
