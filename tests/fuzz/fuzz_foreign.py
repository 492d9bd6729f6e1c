"""macOS and Windows files, as lief reads them: it must not crash."""

import struct

from tests.fuzz.choices import Choices
from tests.fuzz.laws import SMALL, check_all
from tests.support.contents import GOOD_WHEEL, MODULE, wheel

from torchyard.package.limits import Faults
from torchyard.package.macho_pe.stream import ForeignStream, is_foreign
from torchyard.package.members import FoundMembers

_RAW = 255


def try_one(data: bytes) -> None:
    choices = Choices(data)
    with_rules = choices.number() % 8 == 0
    content = choices.rest() if choices.number() == _RAW else choices.pick((_macho, _fat))(choices)
    if not is_foreign(content):
        return
    found = FoundMembers(SMALL, Faults())
    stream = ForeignStream(content, len(content), SMALL)
    for place in range(0, len(content), 1024):
        stream.feed(content[place : place + 1024])
    binary = found.binary("a.dylib", stream, tuple)
    assert (binary is None) == bool(found.faults.all())
    if binary is not None:
        assert max(len(binary.exports), len(binary.imports)) <= SMALL.table
        if with_rules:
            check_all(wheel({**GOOD_WHEEL, MODULE: binary}))


def _command(choices: Choices, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<II", choices.near(kind), choices.near(8 + len(body))) + body


def _macho(choices: Choices) -> bytes:
    """A library with names, directories, symbols and the list of what it exports."""
    names = b"\0_f\0_g\0" + (choices.text() if choices.rarely() else b"")
    symbols = struct.pack("<IBBHQ", choices.near(1), choices.near(15, 8), 1, 0, 64)
    symbols += struct.pack("<IBBHQ", choices.near(4), 1, 0, choices.near(0x100, 16), 0)
    exports = choices.text() if choices.rarely() else b"\0\1_f\0\6\2\0\x40\0"
    name = struct.pack("<IIII", choices.near(24), 0, 0, 0) + choices.pick((b"libx.dylib\0", b"x"))
    system = struct.pack("<IIII", 1, choices.near(11 << 16), 0, choices.near(0))
    commands = [
        _command(choices, 0xD, name),
        _command(choices, 0xC, name),
        _command(choices, 0x8000001C, struct.pack("<I", choices.near(12)) + b"@loader_path/.\0"),
        _command(choices, 0x32, system),
        _command(choices, 0x1B, bytes(range(16))),
        *(_any(choices) for _ in range(choices.number() % 4)),
    ]
    place = 32 + sum(map(len, commands)) + 16 + 24 + 72
    start = place + len(exports)
    places = choices.near(place), choices.near(len(exports))
    commands.append(_command(choices, 0x80000033, struct.pack("<II", *places)))
    numbers = [choices.near(number) for number in (start, 2, start + 32, len(names))]
    commands.append(_command(choices, 2, struct.pack("<IIII", *numbers)))
    length = choices.near(len(exports) + 32 + len(names), 64)
    row = (b"__LINKEDIT", place, length, choices.near(place, 64), length, 7, 1, choices.near(0), 0)
    commands.append(_command(choices, 0x19, struct.pack("<16sQQQQiiII", *row)))
    body = b"".join(commands)
    counts = choices.near(len(commands)), choices.near(len(body))
    head = struct.pack("<IIIIIIII", 0xFEEDFACF, choices.near(0x0100000C), 0, 6, *counts, 0, 0)
    return head + body + exports + symbols + names


def _any(choices: Choices) -> bytes:
    """Any command that lief knows, with anything in it."""
    return _command(choices, choices.number() % 0x36, choices.text())


def _fat(choices: Choices) -> bytes:
    """Several libraries in one; they may lie over each other."""
    count = 1 + choices.number() % 2
    parts = [_macho(choices) for _ in range(count)]
    head = struct.pack(">II", 0xCAFEBABE, choices.near(count))
    place = 64
    for part in parts:
        numbers = choices.near(place), choices.near(len(part)), choices.near(3)
        head += struct.pack(">IIIII", choices.near(0x01000007), 0, *numbers)
        place += len(part)
    return head.ljust(64, b"\0") + b"".join(parts)
