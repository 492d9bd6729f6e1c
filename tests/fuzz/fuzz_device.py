"""Code for GPUs: the result does not depend on how a file is cut into pieces."""

import struct
import zlib

from tests.fuzz.choices import Choices

from torchyard.package.contents import DeviceCode
from torchyard.package.device.scan import DeviceScan

_RAW = 255
_PAGE = 4096


def try_one(data: bytes) -> None:
    choices = Choices(data)
    sizes = [1 + choices.number(2) % 8192 for _ in range(4)]
    content = choices.rest() if choices.number() == _RAW else _built(choices)
    whole = _scanned(content, [len(content) or 1])
    assert _scanned(content, sizes) == whole
    for code in whole:
        assert code.programs > 0


def _scanned(content: bytes, sizes: list[int]) -> tuple[DeviceCode, ...]:
    scan = DeviceScan()
    place, index = 0, 0
    while place < len(content):
        size = sizes[index % len(sizes)]
        scan.feed(content[place : place + size])
        place, index = place + size, index + 1
    return scan.found()


def _built(choices: Choices) -> bytes:
    found = b""
    for _ in range(choices.number() % 8):
        kinds = (_container, _container, _bundle, _packed, _filling)
        found += choices.pick(kinds)(choices, len(found))
    return found


def _filling(choices: Choices, place: int) -> bytes:
    return choices.text()


def _container(choices: Choices, place: int) -> bytes:
    """What nvcc makes: programs with headers, inside of a container."""
    programs = b""
    for _ in range(choices.number() % 4):
        content = choices.take(choices.number() % 64)
        programs += struct.pack(
            "<HHIQIIHHIIIQ",
            *(choices.pick((2, 1, 3)), 257, choices.near(64), choices.near(len(content), 64)),
            *(0, 0, 0, 0, choices.near(90), 0, 0, choices.near(choices.pick((0, 1, 2)) << 20, 64)),
        )
        programs += bytes(64 - struct.calcsize("<HHIQIIHHIIIQ")) + content
    gap = b"" if choices.rarely() else bytes(-place % 8)
    numbers = choices.near(1, 16), choices.near(16, 16), choices.near(len(programs), 64)
    return gap + struct.pack("<4sHHQ", b"\x50\xed\x55\xba", *numbers) + programs


def _list(choices: Choices) -> bytes:
    """What clang makes: a list of programs by target."""
    rows = b""
    count = choices.number() % 4
    for _ in range(count):
        target = choices.pick((b"hipv4-amdgcn-amd-amdhsa--gfx90a", b"host-x86_64--", b"amdgcn--"))
        target += choices.text() if choices.rarely() else b""
        numbers = choices.near(_PAGE, 64), choices.near(100, 64), choices.near(len(target), 64)
        rows += struct.pack("<QQQ", *numbers) + target
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", choices.near(count, 64)) + rows


def _bundle(choices: Choices, place: int) -> bytes:
    return bytes(-place % _PAGE) + _list(choices)


def _packed(choices: Choices, place: int) -> bytes:
    """The same, compressed; most sizes are those that it has."""
    content = _list(choices) + bytes(choices.number(2))
    packed = zlib.compress(content)
    version = choices.pick((2, 3, 1, 4))
    shape = "<QQ" if version == 3 else "<I" if version == 1 else "<II"
    header = 16 + struct.calcsize(shape)
    bits = 64 if version == 3 else 32
    sizes = [choices.near(header + len(packed), bits), choices.near(len(content), bits)]
    numbers = struct.pack(shape, *sizes[-len(shape) + 1 :])
    method = choices.near(0, 16)
    return (
        bytes(-place % _PAGE)
        + struct.pack("<4sHH", b"CCOB", version, method)
        + numbers
        + bytes(8)
        + packed
    )
