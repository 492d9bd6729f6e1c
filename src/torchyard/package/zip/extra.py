"""The extra fields of zip members: ZIP64 numbers, and others."""

import struct

from torchyard.package.contents import FaultKind
from torchyard.package.limits import Faults

_LARGE, _OTHER_NAME = 0x0001, 0x7075
_MAX_32 = 0xFFFF_FFFF


def large_numbers(
    extra: bytes, numbers: tuple[int, int, int], name: str, faults: Faults, *, strict: bool
) -> tuple[int, int, int]:
    """Replace numbers marked as too large by those of the ZIP64 field.

    A directory must not have other numbers in it; a member's header may repeat them.
    """
    fields = _fields(extra, name, faults)
    large = [content for kind, content in fields if kind == _LARGE]
    if any(kind == _OTHER_NAME for kind, _ in fields):
        faults.add(FaultKind.STRUCTURE, name, "has a second name in an extra field")
    if len(large) > 1:
        faults.add(FaultKind.STRUCTURE, name, "has more than one ZIP64 field")
    content = large[0] if large else b""
    found = list(numbers)
    marked = [index for index, number in enumerate(numbers) if number == _MAX_32]
    for index in marked:
        if len(content) < 8:  # noqa: PLR2004 - a number
            faults.add(FaultKind.STRUCTURE, name, "lacks a size or an offset in its ZIP64 field")
            break
        (found[index],) = struct.unpack_from("<Q", content)
        content = content[8:]
    if content and strict:
        faults.add(FaultKind.STRUCTURE, name, "has unused numbers in a ZIP64 field")
    return found[0], found[1], found[2]


def _fields(extra: bytes, name: str, faults: Faults) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    offset = 0
    while offset + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, offset)
        offset += 4 + size
        if offset > len(extra):
            break
        found.append((kind, extra[offset - size : offset]))
    if offset != len(extra):
        faults.add(FaultKind.STRUCTURE, name, "has truncated extra fields")
    return found
