"""Lines of a log that belong together, such as a traceback or a ninja command's output.

A block is fed line by line, and only keeps lines that may be shown.
"""

import re
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from torchyard.model.failure import Found, LineSeverity, LogLine, SourceLocation
from torchyard.run.failure_patterns import Match, best

WIDTH = 300
"""Longer lines are shortened."""

PROGRESS = re.compile(r"\[(\d+)/(\d+)\] ")
CMAKE_ERROR = "CMake Error"
CMAKE_WARNING = ("CMake Warning", "CMake Deprecation Warning")
FAILED = "FAILED: "
TRACEBACK = "Traceback (most recent call last):"
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_LEADS = ("In file included from ", "from ")
_QUOTES = 3
_GAP = 12
_HEAD = 7
_MESSAGE = 4
_TEXT = 40


_UNIT = re.compile(r" -c ([^\s-]\S*)")  # PyTorch's extensions have `-c -c FILE`


_LOCATION = re.compile(
    r"""
      File [ ] "(?P<python>[^"]{1,300})", [ ] line [ ] (?P<row>\d+)
    | (?P<file> [^\s:'"()]{1,300} \.
        (?: [ch](?: c | h | pp | xx )? | cuh? | hip | py[xi]? | txt | cmake | toml | cfg | rs ) )
      [:(] (?P<line>\d+) (?: [:,] (?P<column>\d+) )? (?= [:\s)] | $ )
    """,
    re.VERBOSE,
)
_STRING = "<string>"
_SETUP_PY = "setup.py"
_RUNS_SETUP_PY = "setuptools/build_meta.py"
"""Tracebacks show `<string>` for the setup.py of these commands."""


def location_in(line: str) -> SourceLocation | None:
    """Return the source location in a line of a compiler, CMake or Python."""
    found = _LOCATION.search(line)
    if found is None:
        return None
    return SourceLocation(
        file=found["python"] or found["file"],
        line=int(found["row"] or found["line"]),
        column=int(found["column"] or 0),
    )


def _nearest(lines: Iterable[str]) -> SourceLocation | None:
    """Return the first location in the project, or else the first one."""
    found = [location for line in lines if (location := location_in(line))]
    own = (location for location in found if not location.is_foreign)
    return next(own, found[0] if found else None)


class LineMatcher(Protocol):
    """Recognises failures in lines."""

    def matches(self, line: str) -> list[Match]:
        """Return the failures that a line matches."""


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def excerpt(number: int, line: str, start: int = 0) -> LogLine:
    """Return a line, or if it is too long, its part with the error."""
    if len(line) > WIDTH:
        begin = max(0, start - WIDTH // 3)
        part = line[begin : begin + WIDTH]
        line = ("… " if begin else "") + part + (" …" if begin + WIDTH < len(line) else "")
    return LogLine(number=number, text=line)


_TELLING = {LineSeverity.FATAL, LineSeverity.DOUBTFUL}


class LogBlock:
    """Matching lines, each with the lines that lead to it and the quoted source below it."""

    found = Found.LINE

    def __init__(self, known: LineMatcher, limit: int) -> None:
        self.known = known
        self.limit = limit
        self.lines: dict[int, LogLine] = {}
        self.matches: dict[str, Match] = {}
        self.match_lines: dict[str, LogLine] = {}
        self.locations: dict[str, SourceLocation | None] = {}
        self.last = 0
        self.unit: str | None = None
        self.chosen: Match | None = None
        self._recent: deque[tuple[int, str]] = deque(maxlen=4)
        self._quotes = 0

    @property
    def severity(self) -> LineSeverity:
        """The highest severity of known lines; fatal if there is none."""
        severities = {match.severity for match in self.matches.values()} - {LineSeverity.SILENT}
        return next((s for s in LineSeverity if s in severities), LineSeverity.FATAL)

    @property
    def first(self) -> int:
        """The number of the first line."""
        return min(self.lines, default=0)

    def adopt(self, other: "LogBlock", number: int) -> None:
        """Take over the lines of a block that ended shortly before this one."""
        if number - other.last <= _GAP:
            self.lines |= other.lines
            self.keep(other.matches.values())
            self.match_lines = other.match_lines | self.match_lines
            self.locations = other.locations | self.locations

    def take(self, number: int, line: str) -> bool:
        """Add a line; return False if it is not part of this block."""
        raise NotImplementedError

    def close(self) -> None:
        """Evaluate the block as a whole."""

    def add(self, number: int, line: str, start: int = 0) -> None:
        if len(self.lines) < self.limit:
            self.lines.setdefault(number, excerpt(number, line, start))

    def keep(self, matches: Iterable[Match], location: tuple[int, str] | None = None) -> None:
        """Keep matches, each failure once, with its line."""
        for match in matches:
            is_new = self.matches.setdefault(match.name, match) is match
            if location:
                line = excerpt(*location, match.start)
                old = self.match_lines.get(match.name)
                if is_new or (old and old.text == line.text):  # a retry: the last one counts
                    self.match_lines[match.name] = line

    @property
    def telling(self) -> LogLine | None:
        """The most telling line."""
        match = self.chosen or best(self.matches.values())
        return self.match_lines.get(match.name) if match else None

    @property
    def where(self) -> SourceLocation | None:
        """The source location of the failure."""
        match = self.chosen or best(self.matches.values())
        return self.locations.get(match.name) if match else None

    def repeats(self, other: "LogBlock") -> bool:
        """Return whether another block repeats this one, after a retry."""
        mine, theirs = self.telling, other.telling
        return mine is not None and theirs is not None and mine.text == theirs.text

    def evidence(self) -> tuple[tuple[LogLine, ...], Match | None]:
        """Return the lines to show, including the line of the failure that explains them."""
        match = self.chosen or best(self.matches.values())
        lines = dict(sorted(self.lines.items())[: self.limit])
        if match and (line := self.match_lines.get(match.name)) and line.number not in lines:
            if len(lines) == self.limit:
                lines.popitem()
            lines[line.number] = line
        return tuple(line for _, line in sorted(lines.items())), match

    def only(self, match: Match) -> "LogBlock":
        """Return a block of a single match and its line."""
        block = LogBlock(self.known, self.limit)
        block.matches[match.name] = block.chosen = match
        line = self.match_lines.get(match.name) or next(iter(self.lines.values()), None)
        if line:
            block.lines[line.number] = block.match_lines[match.name] = line
        return block

    def look(self, number: int, line: str) -> list[Match]:
        """Keep a matching line, and the lines that belong to it."""
        matches = self.known.matches(line)
        self.keep((m for m in matches if m.severity == LineSeverity.SILENT), (number, line))
        telling = [m for m in matches if m.severity in _TELLING]
        if telling:
            for lead in self._leads():
                self.add(*lead)
            self.add(number, line, telling[0].start)
            self.keep(telling, (number, line))
            above = [text for _, text in self._recent if text.lstrip().startswith(_LEADS)]
            location = _nearest((line, *reversed(above)))
            if ": note: " in line:  # part of the error above
                location = next(iter(self.locations.values()), location)
            self.locations = {match.name: location for match in telling} | self.locations
            self.last = number
            self._quotes = _QUOTES
        elif self._quotes and line[:1] == " ":
            self.add(number, line)
            self._quotes -= 1
        else:
            self._quotes = 0
        self._recent.append((number, line))
        return matches

    def look_at_whole(self, lines: list[str]) -> None:
        """Match the joined lines, for messages that are wrapped."""
        whole = " ".join(" ".join(lines).split())
        self.keep(self.known.matches(whole))

    def _leads(self) -> list[tuple[int, str]]:
        """Return the lines above an error that locate it."""
        recent = list(self._recent)
        for index, (_, line) in reversed(list(enumerate(recent))):
            if not line.startswith(" "):
                break
            if line.lstrip().startswith('File "'):  # of a traceback: a location and its code
                return recent[index : index + 2]
        if recent and not self.known.matches(recent[-1][1]):
            line = recent[-1][1].strip()
            if line.endswith((":", "required from here")) or line.startswith(_LEADS):
                return recent[-1:]
        return []


class LineBlock(LogBlock):
    """Single errors near each other, outside of any tool's block."""

    def __init__(self, known: LineMatcher, limit: int, recent: Iterable[tuple[int, str]]) -> None:
        super().__init__(known, limit)
        self._recent.extend(recent)

    def take(self, number: int, line: str) -> bool:
        if (self.last and number - self.last > _GAP) or PROGRESS.match(line):
            return False
        severities = {match.severity for match in self.known.matches(line)}
        if LineSeverity.BOUNDARY in severities:
            return False
        proves = {LineSeverity.FATAL}
        if not self.matches or self.severity == LineSeverity.DOUBTFUL:
            proves.add(LineSeverity.DOUBTFUL)
        if severities and not severities & proves:
            return True  # repeated, or unrelated
        self.look(number, line)
        return True


class NinjaBlock(LogBlock):
    """A command that failed under ninja: its targets, the command, and its output."""

    found = Found.NINJA

    def __init__(self, known: LineMatcher, limit: int, number: int, line: str) -> None:
        super().__init__(known, limit)
        self.look(number, line)
        self.add(number, line)
        self._command = number + 1
        self.unit = next(iter(line.removeprefix(FAILED).rpartition("]")[2].split()), None)
        self._last: deque[tuple[int, str]] = deque(maxlen=6)

    def take(self, number: int, line: str) -> bool:
        if line.startswith((FAILED, "ninja: ")) or PROGRESS.match(line):
            return False
        if number == self._command:
            if compiled := _UNIT.search(line):
                self.unit = compiled[1]
        elif line:
            matches = self.look(number, line)
            self._last.append((number, line))
            return all(match.severity != LineSeverity.BOUNDARY for match in matches)
        return True

    def close(self) -> None:
        if not self.matches:
            for number, line in self._last:
                self.add(number, line)
        self.look_at_whole([line.text for line in self.lines.values()])


class CMakeBlock(LogBlock):
    """CMake's wrapped and indented messages about one or more errors in a row."""

    found = Found.CMAKE

    def __init__(self, known: LineMatcher, limit: int, number: int, line: str) -> None:
        super().__init__(known, limit)
        self._indent = indentation(line)
        self._first = number
        self._text = [line]
        self.look(number, line)

    def take(self, number: int, line: str) -> bool:
        if not line:
            return True
        inner = indentation(line) > self._indent
        again = line.lstrip().startswith((CMAKE_ERROR, "Call Stack"))
        second = number == self._first + 1 and not line.startswith(("-- ", "["))
        if not (inner or again or second):
            return False
        self.look(number, line)
        if len(self.lines) < _HEAD:
            self.add(number, line)
        if len(self._text) < _TEXT:
            self._text.append(line)
        return True

    @property
    def where(self) -> SourceLocation | None:
        """The first location in the call stack that belongs to the project."""
        return _nearest(self._text)

    def close(self) -> None:
        self.look_at_whole(self._text)


class PythonBlock(LogBlock):
    """A traceback and its chained ones: frame, exception, message."""

    found = Found.PYTHON

    def __init__(self, known: LineMatcher, limit: int, line: str) -> None:
        super().__init__(known, limit)
        self._indent = indentation(line)
        self._inside = True
        self._message: list[str] = []
        self._text: list[str] = []
        self._frames: list[SourceLocation] = []

    @property
    def where(self) -> SourceLocation | None:
        """The innermost frame in the project, or else the location in the message."""
        own = next((frame for frame in reversed(self._frames) if not frame.is_foreign), None)
        return own or super().where

    @property
    def severity(self) -> LineSeverity:
        """Fatal, unless the traceback only reports another program's failure."""
        known = super().severity
        return known if known == LineSeverity.WRAPPER else LineSeverity.FATAL

    def take(self, number: int, line: str) -> bool:
        if line.lstrip().startswith((*_CHAIN, TRACEBACK)):
            self._inside = line.endswith(TRACEBACK)
            self._message = []
        elif not line:
            self._message = []
        elif self._inside and indentation(line) > self._indent:
            self._frame(number, line)
        elif self._inside or self._goes_on(line):
            self._inside = False
            self._exception(number, line)
        else:
            return False
        return True

    def _frame(self, number: int, line: str) -> None:
        """Keep the innermost frame, without carets."""
        if line.lstrip().startswith('File "') and (frame := location_in(line)):
            is_setup = any(frame.file.endswith(_RUNS_SETUP_PY) for frame in self._frames)
            if is_setup and frame.file == _STRING:
                frame = SourceLocation(file=_SETUP_PY, line=frame.line)
                line = line.replace(_STRING, _SETUP_PY)
            self._frames.append(frame)
            self._recent.clear()
        if line.strip("^~ "):
            self._recent.append((number, line))

    def _goes_on(self, line: str) -> bool:
        """Return whether a line continues an exception's message."""
        if not 0 < len(self._message) < _MESSAGE:
            return False
        return self._message[0].endswith(":") or indentation(line) > self._indent

    def _exception(self, number: int, line: str) -> None:
        for lead in self._recent:
            self.add(*lead)
        self._recent.clear()
        self.keep(self.known.matches(line), (number, line))
        self.add(number, line)
        self._message.append(line)
        if len(self._text) < _TEXT:
            self._text.append(line)

    def close(self) -> None:
        self.look_at_whole(self._text)


class IgnoredBlock(LogBlock):
    """A CMake warning, or an exception that Python ignores: never a cause."""

    def __init__(self, known: LineMatcher, limit: int, line: str) -> None:
        super().__init__(known, limit)
        self._indent = indentation(line)
        self._exception = False
        self._text: list[str] = []

    def take(self, number: int, line: str) -> bool:
        if not line or indentation(line) > self._indent:
            self._read(number, line)
            return True
        if line.lstrip().startswith(TRACEBACK):
            self._exception = True
            return True
        if self._exception:
            self._exception = False
            return True
        if not self._text or line.lstrip().startswith("Call Stack"):
            self._read(number, line)
            return True
        return False

    def _read(self, number: int, line: str) -> None:
        """Keep the part of a warning that reports an omission."""
        if len(self._text) < _TEXT:
            self.add(number, line)
            self._text.append(line)

    def close(self) -> None:
        self.look_at_whole(self._text)
