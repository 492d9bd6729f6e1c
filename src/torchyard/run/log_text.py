"""The lines of a log of any size; most are skipped unread.

A log is read in pieces of two megabytes. Only lines with a sign of a known failure, and lines
around them, are inspected.
"""

import re
import zlib
from bisect import bisect_left
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO

PIECE = 1 << 21
BEFORE = 1 << 18
"""Bytes before a line that stay readable."""
END = 2 << 20
"""Bytes to keep in a jump to the end."""
LONGEST = 10_000
"""The longest line to return uncut."""

NumberedLine = tuple[int, str]
Signs = Callable[[bytes, int, int], Sequence[int]]
"""Returns the offsets of signs of failures in a part of a text, in ascending order."""
_NEWLINE = ord("\n")

_GZIP = zlib.MAX_WBITS | 16
_EDGE = re.compile(rb"\[(?:1/\d+|(\d+)/\1)\] ")
"""The first and last lines of ninja's progress."""
_COLOUR = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>])"
)
_STAMP = re.compile(
    r"""
      \[? \d{4}-\d\d-\d\d [T ] \d\d:\d\d:\d\d (?: [.,]\d+ )? (?: Z | [+-]\d\d:?\d\d )? \]?
      (?: [ ] \d\d[OE] \+? )?             # the stream, in the logs of GitLab
      (?: [ ] | $ )
    | \[? \d\d:\d\d:\d\d (?: [.,]\d+ )? \]? [ ]
    | \# \d+ [ ] \d+\.\d+ [ ]              # the step and its seconds, in the logs of docker build
    """,
    re.VERBOSE,
)
_STAMP_STARTS = frozenset("0123456789[#")


def pieces_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a stream, decompressed from gzip, and recoded from UTF-16."""
    first = stream.read(PIECE)
    if first[:2] == b"\x1f\x8b":
        yield from _inflated(first, stream)
    elif first[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        yield from _recoded(first, stream)
    else:
        while first:
            yield first
            first = stream.read(PIECE)


def _inflated(first: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Yield decompressed gzip data, up to damage or truncation."""
    inflate = zlib.decompressobj(wbits=_GZIP)
    while first:
        if inflate.eof:
            inflate = zlib.decompressobj(wbits=_GZIP)
        try:
            yield inflate.decompress(first, PIECE)
        except zlib.error:
            return
        first = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
        first = first or stream.read(PIECE)


def _recoded(first: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Recode PowerShell's UTF-16."""
    decoder = getincrementaldecoder("utf-16")(errors="replace")
    while first:
        yield decoder.decode(first).encode("utf-8", errors="replace")
        first = stream.read(PIECE)


def pieces_of_lines(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield pieces of lines, with or without line breaks."""
    ended = (line if line.endswith("\n") else f"{line}\n" for line in lines)
    while text := "".join(islice(ended, 10_000)):
        yield text.encode("utf-8", errors="replace")


class LogText:
    """A log read once, forwards, with access to the last lines."""

    def __init__(self, pieces: Iterable[bytes], signs: Signs) -> None:
        self.number = 0
        """The number of the last read line; at the end, the number of lines."""
        self._pieces = iter(pieces)
        self._signs = signs
        self._data = b""  # previous lines, whole lines, and from _end, a partial line
        self._start = self._at = self._end = 0
        self._found: Sequence[int] | None = None

    def next(self) -> str | None:
        """Return the next line, or None at the end."""
        if self._at >= self._end and not self._fill():
            self._start = self._at
            return None
        self._start = self._at
        end = self._data.find(b"\n", self._at, self._end)
        self._at = self._end if end < 0 else end + 1
        self.number += 1
        return plain_line(self._data[self._start : self._at])

    def next_sign(self, *, edges: bool) -> str | None:
        """Return the next line with a sign of a failure, or of ninja's start or end."""
        while self._at < self._end or self._fill():
            sign = self._next_sign(edges=edges)
            if sign is not None:
                start = self._data.rfind(b"\n", self._at, sign) + 1 or self._at
                self.number += self._data.count(b"\n", self._at, start)
                self._at = start
                return self.next()
            self.number += self._data.count(b"\n", self._at, self._end)
            self.number += self._data[self._end - 1] != _NEWLINE
            self._at = self._end
        self._start = self._at
        return None

    def _next_sign(self, *, edges: bool) -> int | None:
        if self._found is None:
            self._found = self._signs(self._data, self._at, self._end)
        index = bisect_left(self._found, self._at)
        sign = self._found[index] if index < len(self._found) else None
        if edges and (edge := _EDGE.search(self._data, self._at, sign or self._end)):
            return edge.start()
        return sign

    def recent(self, count: int) -> list[NumberedLine]:
        """Return the lines before the last read one, without empty ones."""
        lines: list[NumberedLine] = []
        number, end = self.number, self._start
        if self._start < self._end:
            number -= 1
        while end > 0 and len(lines) < count:
            start = self._data.rfind(b"\n", 0, end - 1) + 1
            if line := plain_line(self._data[start:end]):
                lines.append((number, line))
            number -= 1
            end = start
        return lines[::-1]

    def before(self) -> str:
        """Return the available text before the last read line."""
        start = max(0, self._start - BEFORE)
        return self._data[start : self._start].decode("utf-8", errors="replace")

    def jump(self) -> None:
        """Skip all lines except the last ones."""
        last, passed = self._data[self._at : self._end], self.number
        while self._fill():
            last += self._data[self._at : self._end]
            self._at = self._end
            if len(last) > 2 * END:
                start = last.find(b"\n", len(last) - END) + 1
                passed += last.count(b"\n", 0, start)
                last = last[start:]
        start = last.find(b"\n", len(last) - END) + 1 if len(last) > END else 0
        self.number = passed + last.count(b"\n", 0, start)
        self._data, self._found = last[start:], None
        self._at = self._start = 0
        self._end = len(self._data)

    def _fill(self) -> bool:
        """Read more whole lines; return False at the end."""
        kept = self._data[max(0, self._end - BEFORE) : self._end]
        rest = self._data[self._end :]
        self._found = None
        for piece in self._pieces:
            if b"\x1b" in piece or b"\x1b" in rest:
                rest, piece = _COLOUR.sub(b"", rest + piece), b""  # noqa: PLW2901
            self._data = b"".join((kept, rest, piece))
            self._at = len(kept)
            self._end = self._data.rfind(b"\n", self._at) + 1
            if self._end:
                return True
            rest = _shortened(self._data[self._at :])
        self._data, self._at = kept + rest, len(kept)
        self._end = len(self._data)
        return bool(rest)


def _shortened(rest: bytes) -> bytes:
    """Shorten an unfinished line: the last state of a progress bar is enough."""
    if len(rest) <= PIECE:
        return rest
    return rest.rpartition(b"\r")[2][:PIECE]


def plain_line(raw: bytes) -> str:
    """Return a line without its time and overwritten progress bars, cut if too long."""
    raw = raw.rstrip()
    if b"\r" in raw:
        raw = raw.rpartition(b"\r")[2]
    line = raw[: 2 * LONGEST].decode("utf-8", errors="replace")
    if line[:1] in _STAMP_STARTS and (stamp := _STAMP.match(line)):
        line = line[stamp.end() :]
    return line[:LONGEST]
