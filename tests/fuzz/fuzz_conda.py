"""Conda packages of both kinds: all of the reader, and all rules."""

import bz2

import msgspec
from tests.fuzz.choices import Choices
from tests.fuzz.elves import build_elf
from tests.fuzz.laws import check_all, is_within_limits, read_bytes
from tests.fuzz.zips import build_zip
from tests.support.contents import CONDA_NAME, INDEX, SITE, VERSION

from torchyard.host.zstd import compress

_STEM = CONDA_NAME.removesuffix(".conda")
_RAW = 255
_TYPES = (b"0", b"5", b"2", b"1", b"L", b"K", b"x", b"g", b"3", b"\0")


def try_one(data: bytes) -> None:
    choices = Choices(data)
    is_new = choices.number() % 2 == 0
    if choices.number() == _RAW:
        package = choices.rest()
    elif is_new:
        package = _new(choices)
    else:
        package = _packed(choices, bz2.compress(_tar(choices, _members(choices)), 1))
    contents = read_bytes(package, CONDA_NAME if is_new else f"{_STEM}.tar.bz2")
    is_within_limits(contents)
    check_all(contents)


def _new(choices: Choices) -> bytes:
    index = msgspec.json.encode(INDEX)
    paths = choices.text() if choices.rarely() else b'{"paths": []}'
    info = _tar(choices, [(b"info/index.json", index), (b"info/paths.json", paths)])
    files = _tar(choices, _members(choices))
    members = [
        (b"metadata.json", b'{"conda_pkg_format_version": 2}'),
        (f"pkg-{_STEM}.tar.zst".encode(), _packed(choices, compress(files, 1))),
        (f"info-{_STEM}.tar.zst".encode(), _packed(choices, compress(info, 1))),
    ]
    return build_zip(choices, members, method=0)


def _packed(choices: Choices, data: bytes) -> bytes:
    """What was compressed, rarely cut off, with something behind it, or twice."""
    if not choices.rarely():
        return data
    return choices.pick((data[: choices.number(2)], data + choices.text(), data * 2))


def _members(choices: Choices) -> list[tuple[bytes, bytes]]:
    members = [(f"{SITE}/tiny/version.py".encode(), VERSION), (b"lib/liba.so", build_elf(choices))]
    for _ in range(choices.number() % 4):
        name = choices.text() if choices.rarely() else b"lib/libb.so"
        members.append((name, choices.text()))
    return members


def _tar(choices: Choices, members: list[tuple[bytes, bytes]]) -> bytes:
    found = b""
    for name, content in members:
        if choices.rarely():
            note = choices.text()
            found += _member(choices, b"", note, choices.pick(_TYPES))
        kind = choices.pick(_TYPES) if choices.rarely() else b"0"
        found += _member(choices, name, content, kind)
    return found + bytes(choices.near(1024, 16) % 4096)


def _member(choices: Choices, name: bytes, content: bytes, kind: bytes) -> bytes:
    size = choices.text() if choices.rarely() else b"%011o" % choices.near(len(content), 32)
    link = choices.pick((b"lib/liba.so", b"../../out", b"/etc/passwd", b"", name))
    block = bytearray(512)
    for place, length, field in (
        (0, 100, name),
        (100, 8, b"%07o" % choices.near(0o644, 16)),
        (124, 12, size),
        (157, 100, link),
        (257, 8, b"ustar\x0000"),
        (345, 155, choices.text() if choices.rarely() else b""),
    ):
        block[place : place + min(len(field), length)] = field[:length]
    block[156:157] = kind
    block[148:156] = b"%06o\0 " % choices.near(sum(block) + 8 * 32, 16)
    return bytes(block) + content + bytes(-len(content) % 512)
