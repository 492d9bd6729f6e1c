"""ELF files that are right in most places."""

import struct
from typing import NamedTuple

from tests.fuzz.choices import Choices

_HEADERS = 6
_NAMES = b"\0liba.so\0libc.so.6\0GLIBC_2.34\0$ORIGIN/lib\0PyList_New\0_ZNSs4swapERSs\0libx.so\0"
_TEXTS = b"\0.dynsym\0.dynstr\0.dynamic\0.note\0.nv_fatbin\0.shstrtab\0"


class _Shape(NamedTuple):
    """How a file's class and byte order shape it."""

    order: str
    word: str

    @property
    def bits(self) -> int:
        return 64 if self.word == "Q" else 32

    @property
    def head(self) -> int:
        return 64 if self.word == "Q" else 52


def build_elf(choices: Choices) -> bytes:
    """A library with a dynamic section, symbols, versions, notes and sections."""
    word = "Q" if choices.number() % 4 != 3 else "I"
    order = "<>"[choices.number() % 8 == 7]
    shape = _Shape(order, word)
    bits, head = shape.bits, shape.head
    names = _NAMES + (choices.text() + b"\0" if choices.rarely() else b"")
    start = head + _HEADERS * (56 if bits == 64 else 32)
    parts = {
        "names": names,
        "symbols": _symbols(choices, order, bits, len(names)),
        "needs": _needs(choices, order),
        "defines": struct.pack(f"{order}HHHHIIIII", 1, 0, 2, 1, 0, choices.near(20), 0, 18, 0),
        "hash": struct.pack(f"{order}IIIIII", 1, choices.near(4), 0, 0, 0, 0),
        "gnu_hash": _gnu_hash(choices, order, word),
        "note": _note(choices, order),
        "gap": bytes(choices.number(2) % 4096) if choices.rarely() else b"",
    }
    places: dict[str, int] = {}
    body = b""
    for name, part in parts.items():
        places[name] = start + len(body)
        body += part + bytes(-len(part) % 8)
    dynamic = _dynamic(choices, order + word * 2, places, len(names))
    places["dynamic"] = start + len(body)
    body += dynamic
    sections = _sections(choices, shape, places, parts, start + len(body))
    size = start + len(body)
    segments = [
        (1, 0, choices.near(size, bits)),
        (2, places["dynamic"], choices.near(len(dynamic), bits)),
        (4, places["note"], choices.near(len(parts["note"]), bits)),
        (choices.near(0x6474E551), 0, 0),
        (choices.pick((0, 2, 4, 1)), choices.near(places["note"], bits), choices.number(2)),
        (0, 0, 0),
    ]
    top = _header(choices, shape, len(body) + start, len(sections[1]))
    top += b"".join(_segment(choices, shape, segment) for segment in segments)
    return top + body + sections[0] + b"".join(sections[1])


def _header(choices: Choices, shape: _Shape, end: int, count: int) -> bytes:
    order, word = shape
    machine = choices.near(62, 16)
    texts = end + len(_TEXTS)
    names_at = texts + -texts % 8
    kind = (2 if word == "Q" else 1, 2 if order == ">" else 1, 1)
    shapes = (56, 64) if word == "Q" else (32, 40)
    places = choices.near(shape.head, shape.bits), choices.near(names_at, shape.bits)
    return (
        b"\x7fELF"
        + bytes((*kind, *bytes(9)))
        + struct.pack(
            f"{order}HHI{word * 3}IHHHHHH",
            *(3, machine, 1, 0, *places, 0, shape.head),
            *(choices.near(shapes[0], 16), choices.near(_HEADERS, 16)),
            *(choices.near(shapes[1], 16), choices.near(count, 16), choices.near(count - 1, 16)),
        )
    )


def _segment(choices: Choices, shape: _Shape, segment: tuple[int, int, int]) -> bytes:
    kind, offset, size = segment
    order, word = shape
    flags = choices.near(6)
    if word == "Q":
        place = choices.near(offset, 64)
        return struct.pack(f"{order}IIQQQQQQ", kind, flags, place, offset, 0, size, size, 8)
    return struct.pack(f"{order}8I", kind, choices.near(offset), offset, 0, size, size, flags, 8)


def _symbols(choices: Choices, order: str, bits: int, names: int) -> bytes:
    found = b""
    for _ in range(choices.number() % 8):
        name, info, index = choices.near(choices.number() % names), choices.near(18, 8), 0
        other = choices.near(0, 8)
        if choices.number() % 2:
            index = choices.near(1, 16)
        shape = f"{order}IBBHQQ" if bits == 64 else f"{order}IIIBBH"
        row = (name, info, other, index, 0, 0) if bits == 64 else (name, 0, 0, info, other, index)
        found += struct.pack(shape, *row)
    return found


def _needs(choices: Choices, order: str) -> bytes:
    link = choices.near(0)
    first = struct.pack(f"{order}HHIII", 1, choices.near(1, 16), choices.near(9), 16, link)
    return first + struct.pack(f"{order}IHHII", 0, 0, 2, choices.near(19), choices.near(0))


def _gnu_hash(choices: Choices, order: str, word: str) -> bytes:
    numbers = [choices.near(number) for number in (1, 1, 1, 6)]
    chain = [choices.near(number) for number in (1, 2, 4, 5)]
    return struct.pack(f"{order}IIII{word}IIII", *numbers, 0, *chain)


def _note(choices: Choices, order: str) -> bytes:
    content = choices.take(8)
    sizes = choices.near(4), choices.near(len(content))
    return struct.pack(f"{order}III", *sizes, choices.near(3)) + b"GNU\0" + content


def _dynamic(choices: Choices, shape: str, places: dict[str, int], names: int) -> bytes:
    rows = [
        (5, places["names"]),
        (10, names),
        (6, places["symbols"]),
        (1, 9),
        (14, 1),
        (choices.pick((15, 29)), 30),
        (0x6FFFFFFE, places["needs"]),
        (0x6FFFFFFF, 1),
        (0x6FFFFFFC, places["defines"]),
        (0x6FFFFFFD, 1),
        choices.pick(((0x6FFFFEF5, places["gnu_hash"]), (4, places["hash"]))),
        (30, 8),
    ]
    rows += [
        (choices.pick((1, 15, 29, 22, 30)), choices.number() % names)
        for _ in range(choices.number() % 8)
    ]
    if choices.rarely() and rows:
        rows.remove(choices.pick(rows))
    bits = 64 if shape[-1] == "Q" else 32
    most = (1 << bits) - 1
    packed = (struct.pack(shape, tag & most, choices.near(value, bits)) for tag, value in rows)
    return b"".join(packed) + struct.pack(shape, 0, 0)


def _sections(
    choices: Choices, shape: _Shape, places: dict[str, int], parts: dict[str, bytes], end: int
) -> tuple[bytes, list[bytes]]:
    """The texts of the sections' names, and the headers that follow them."""
    bits = shape.bits
    known = [
        (0, 0, 0, 0, 0),
        (1, 11, places["symbols"], len(parts["symbols"]), 2),
        (9, 3, places["names"], len(parts["names"]), 0),
        (17, 6, places["dynamic"], 16, 2),
        (26, 7, places["note"], len(parts["note"]), 0),
        (32, 1, 0, choices.number(2), 0),
        (43, 3, end, len(_TEXTS), 0),
    ]
    form = f"{shape.order}II{shape.word * 4}II{shape.word * 2}"
    rows = [
        struct.pack(
            form,
            *(choices.near(name), choices.near(kind), 0, 0),
            *(choices.near(offset, bits), choices.near(size, bits), choices.near(link), 0, 8, 0),
        )
        for name, kind, offset, size, link in known
    ]
    return _TEXTS + bytes(-(end + len(_TEXTS)) % 8), rows
