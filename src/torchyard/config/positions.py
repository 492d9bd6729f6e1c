"""Positions of the keys and values of a TOML text.

`tomllib` parses TOML but reports no positions. This scanner adds them: it expects a text that
`tomllib` has accepted, and notes the location of each key and value in one pass.
`tests/property/test_positions.py` checks that it finds exactly what `tomllib` finds.
"""

import re
import tomllib
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Path of a value in a document: keys of tables and indexes of lists."""


class Location(NamedTuple):
    """Offsets into a text: of a key if the value has one, and of the value itself."""

    key: tuple[int, int] | None
    value: tuple[int, int]


_TRIVIA = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[0-9-]+ [0-9:.]+[^\s,\]}#]*"
    r"|[^\s,\[\]{}#]+",
    re.DOTALL,
)


def locate(text: str) -> dict[Path, Location]:
    """Return the location of each value in a text that `tomllib` accepts."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.locations


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.locations: dict[Path, Location] = {}
        self.lengths: dict[Path, int] = {}

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            msg = f"no TOML at offset {self.at}"
            raise ValueError(msg)
        self.at = found.end()
        return found[0]

    def at_end(self, bracket: str) -> bool:
        """Skip space and comments; consume the closing bracket and return True if it comes next."""
        self.skip(_TRIVIA)
        return self.skipped(bracket)

    def skipped(self, token: str) -> bool:
        """Consume a token and return True if it comes next."""
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def document(self) -> None:
        table: Path = ()
        self.skip(_TRIVIA)
        while self.at < len(self.text):
            if self.skipped("[["):
                table = self.header(array=True)
            elif self.skipped("["):
                table = self.header(array=False)
            else:
                self.pair(table)
            self.skip(_TRIVIA)

    def header(self, *, array: bool) -> Path:
        """Return the path in a table header; the header of an array means its last entry."""
        start = self.at
        names = self.keys()
        self.skip(_SPACE)
        span = (start, self.at)
        self.at += 2 if array else 1
        path: Path = ()
        for name in names[:-1]:
            path = self.newest((*path, name))
        path = (*path, names[-1])
        if array:
            self.locations.setdefault(path, Location(span, span))
            self.lengths[path] = self.lengths.get(path, 0) + 1
            path = self.newest(path)
        self.locations.setdefault(path, Location(span, span))
        return path

    def newest(self, path: Path) -> Path:
        return (*path, self.lengths[path] - 1) if path in self.lengths else path

    def keys(self) -> list[str]:
        """Return the parts of a dotted key."""
        names = []
        while True:
            self.skip(_SPACE)
            name = self.take(_KEY)
            names.append(tomllib.loads(f"k={name}")["k"] if name[0] in "\"'" else name)
            self.skip(_SPACE)
            if not self.skipped("."):
                return names

    def pair(self, table: Path) -> None:
        start = self.at
        path = (*table, *self.keys())
        key = (start, start + len(self.text[start : self.at].rstrip()))
        self.at += 1
        self.skip(_SPACE)
        self.value(path, key)
        for end in range(len(table) + 1, len(path)):
            self.locations.setdefault(path[:end], Location(key, key))

    def value(self, path: Path, key: tuple[int, int] | None) -> None:
        start = self.at
        if self.skipped("["):
            self.array(path)
        elif self.skipped("{"):
            self.inline_table(path)
        else:
            self.take(_SCALAR)
        self.locations[path] = Location(key, (start, self.at))

    def array(self, path: Path) -> None:
        index = 0
        while not self.at_end("]"):
            self.value((*path, index), None)
            index += 1
            self.skip(_TRIVIA)
            self.skipped(",")

    def inline_table(self, path: Path) -> None:
        while not self.at_end("}"):
            self.pair(path)
            self.skip(_TRIVIA)
            self.skipped(",")
