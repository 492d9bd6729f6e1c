"""Streaming reader for the tar archives in packages.

It reads files, directories and links, with the long names of GNU tar and POSIX; other members are a
fault. Reading stops at a damaged header, as later members can't be found.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from torchyard.package.limits import LIMITS

_BLOCK = 512
_LONGEST_NOTE = 1 << 20
_MOST_DIGITS = 20


class Type(StrEnum):
    """The type of a member."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SAME = "same"
    """A hard link to an earlier member."""


_TYPES = {b"0": Type.FILE, b"\0": Type.FILE, b"7": Type.FILE, b"5": Type.FOLDER}
_TYPES |= {b"2": Type.LINK, b"1": Type.SAME}
_FACTS = frozenset(("path", "linkpath", "size"))
_NOTES = _LONG_NAME, _LONG_LINK, _NOTE, _NOTE_FOR_ALL = b"L", b"K", b"x", b"g"


class TarError(Exception):
    """The archive is damaged, or contains unsupported members."""


class TarMember(NamedTuple):
    """A member, and the offset of its content in the unpacked archive."""

    name: str
    type: Type
    size: int
    mode: int
    link: str
    offset: int


class Stream:
    """Bytes that arrive in pieces, and are read in other pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""
        self.offset = 0

    def take(self, size: int) -> Iterator[bytes]:
        """Yield the next `size` bytes, in pieces of any size."""
        while size:
            piece = self._rest or next(self._pieces, b"")
            if not piece:
                msg = "it is cut off"
                raise TarError(msg)
            self._rest = piece[size:]
            piece = piece[:size]
            size -= len(piece)
            self.offset += len(piece)
            yield piece

    def rest(self) -> Iterator[bytes]:
        yield self._rest
        yield from self._pieces

    def read(self, size: int) -> bytes:
        return b"".join(self.take(size))

    def skip_to(self, offset: int) -> None:
        for _ in self.take(offset - self.offset):
            pass


def tar_members(stream: Stream, most: int = LIMITS.directory) -> Iterator[TarMember]:
    """Read consecutive headers. Contents may be read from the stream in between.

    `most` limits the total size of all headers.
    """
    notes: dict[str, str] = {}
    headers = 0
    while True:
        block = stream.read(_BLOCK)
        if not block.strip(b"\0"):
            _check_end(stream)
            return
        if sum(block) - sum(block[148:156]) + 8 * 32 != _number(block[148:156]):
            msg = f"its header at {stream.offset - _BLOCK} is damaged"
            raise TarError(msg)
        kind = block[156:157]
        size = _number(block[124:136])
        headers += _BLOCK + (size if kind in _NOTES else 0)
        if headers > most:
            msg = f"its headers take more than {most} bytes"
            raise TarError(msg)
        if kind in _NOTES:
            content = _note(stream, size)
            if kind == _NOTE:
                notes |= _records(content)
            elif kind == _NOTE_FOR_ALL:
                _refuse_facts(_records(content))
            else:
                field = "path" if kind == _LONG_NAME else "linkpath"
                notes[field] = _text(content)
            continue
        member = _member(block, kind, notes, stream.offset)
        notes = {}
        yield member
        stream.skip_to(member.offset + _padded(member.size))


def _member(block: bytes, kind: bytes, notes: dict[str, str], offset: int) -> TarMember:
    name = _text(block[:100])
    if block[257:263] == b"ustar\0" and block[345]:
        name = f"{_text(block[345:500])}/{name}"
    name = notes.get("path", name)
    if kind not in _TYPES:
        msg = f"`{name}` is neither a file nor a link, but of type {kind!r}"
        raise TarError(msg)
    size = _number(block[124:136])
    if "size" in notes:
        size = _decimal(notes["size"])
    link = notes.get("linkpath", _text(block[157:257]))
    found = _TYPES[kind]
    if found is not Type.FILE:
        size = 0
    return TarMember(name, found, size, _number(block[100:108]), link, offset)


def _check_end(stream: Stream) -> None:
    """Check that nothing follows the final zero bytes, as readers differ there."""
    if any(piece.strip(b"\0") for piece in stream.rest()):
        msg = "data follows its end"
        raise TarError(msg)


def _note(stream: Stream, size: int) -> bytes:
    if size > _LONGEST_NOTE:
        msg = f"a name in it takes {size} bytes"
        raise TarError(msg)
    return stream.read(_padded(size))[:size]


def _records(content: bytes) -> dict[str, str]:
    """Read the lines of a POSIX header, each with its length, a key, and a value."""
    found: dict[str, str] = {}
    offset = 0
    while offset < len(content):
        space = content.find(b" ", offset, offset + _MOST_DIGITS + 1)
        end = offset + _decimal(content[offset : max(space, offset)].decode(errors="replace"))
        if not space < end <= len(content):
            msg = "one of its POSIX headers is damaged"
            raise TarError(msg)
        key, _, value = content[space + 1 : end].removesuffix(b"\n").partition(b"=")
        found[_text(key)] = _text(value)
        offset = end
    return found


def _refuse_facts(records: dict[str, str]) -> None:
    """Refuse global POSIX headers other than comments, which not all readers apply."""
    for key in sorted(_FACTS & records.keys()):
        msg = f"a POSIX header sets one {key} for all members"
        raise TarError(msg)


def _decimal(digits: str) -> int:
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        msg = f"`{digits[:_MOST_DIGITS]}` in one of its POSIX headers is not a number"
        raise TarError(msg)
    return int(digits)


def _number(field: bytes) -> int:
    """Return a number from octal digits, or, if large, from binary."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):
        msg = f"{digits!r} is not a number"
        raise TarError(msg)
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="backslashreplace")


def _padded(size: int) -> int:
    return size + -size % _BLOCK
