"""Find the few lines of a log that say why a step failed.

One pass that dismisses most lines cheaply: a build prints hundreds of thousands of compile commands
of thousands of characters each. What counts as the cause, the best first:

1. the first command that failed under ninja, with what it printed;
2. the first other error: a CMake error, a traceback, a line with a fatal pattern;
3. the last line of those that a step may survive, such as a download that is tried again;
4. the lines above the first one that says that something else failed;
5. the last lines of the log.

When ninja starts or finishes, 2 to 4 are discarded: they were not fatal.

The time is bounded whatever a step prints: of a huge log, only the begin and the end are read.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping

from torchyard.model.failure import Diagnosis, Failure, Found, LineSeverity
from torchyard.run.failure_patterns import FailurePatterns, best
from torchyard.run.log_blocks import (
    CMAKE_ERROR,
    CMAKE_WARNING,
    FAILED,
    PROGRESS,
    TRACEBACK,
    CMakeBlock,
    IgnoredBlock,
    LineBlock,
    LogBlock,
    NinjaBlock,
    PythonBlock,
    excerpt,
)

LIMIT = 12
TAIL = 8
_LONG = 400
"""Longer lines are taken for commands unless they look otherwise."""
_COMMAND_HEAD = 200
_LONGEST = 10_000
_EFFORT = 500_000
"""What the begin of a log may cost, in short and ordinary lines: a few seconds."""
_SUSPICIOUS = 50
"""What a line costs that is not ordinary."""
_SHORT = 100
"""Longer lines cost more."""
_END = 5_000
"""The number of lines at the end that are read if the begin has cost too much."""
_END_WIDTH = 1_000
_FLAG = re.compile(r" [-/][A-Za-z]")
_DULL = ("-- ", "copying ", "creating ", "adding ", "running ", "writing ", "Installing ")
"""Harmless lines of CMake and setuptools, such as `-- Performing Test X - Failed`."""

_COLOUR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>])")


def diagnose_log(
    lines: Iterable[str], failures: Mapping[str, Failure], *, limit: int = LIMIT
) -> Diagnosis:
    """Return why a step failed, from the lines of its own log."""
    reader = _Reader(FailurePatterns(failures), limit)
    total = effort = 0
    numbered = enumerate(map(strip_terminal_codes, lines), 1)
    for total, line in numbered:
        cost = _SUSPICIOUS if reader.read(total, line) else 1
        effort += cost * (1 + len(line) // _SHORT)
        if effort > _EFFORT:
            break
    for total, line in deque(((n, line[:_END_WIDTH]) for n, line in numbered), maxlen=_END):
        reader.read(total, line)
    return reader.diagnosis(total)


def strip_terminal_codes(line: str) -> str:
    """Return a line without colours and overwritten progress bars, cut to a bearable length."""
    line = line.rstrip()
    if "\x1b" in line:
        line = _COLOUR.sub("", line).rstrip()
    if "\r" in line:
        line = line.rpartition("\r")[2]
    return line[:_LONGEST]


def _frames(line: str) -> bool:
    """Return whether a line opens a block of its own."""
    if line.startswith(FAILED) or line.endswith(TRACEBACK):
        return True
    return "CMake" in line[:40] and line.lstrip().startswith((CMAKE_ERROR, *CMAKE_WARNING))


def _is_command(line: str) -> bool:
    """Return whether a long line is a command, and not a message about one.

    A message: `sh: line 1: 42 Killed c++ -c`.
    """
    if ":" not in line:
        return True
    flag = _FLAG.search(line, 0, _COMMAND_HEAD)
    return flag is not None and line.find(": ", 0, flag.start()) < 0


class _Reader:
    """The state of one pass over a log."""

    def __init__(self, known: FailurePatterns, limit: int) -> None:
        self._known = known
        self._limit = limit
        self._open: LogBlock | None = None
        self._ninja: LogBlock | None = None
        self._fatal: LogBlock | None = None
        self._doubtful: LogBlock | None = None
        self._wrapper: list[tuple[int, str]] = []
        self._recent: deque[tuple[int, str]] = deque(maxlen=TAIL)

    def read(self, number: int, line: str) -> bool:
        """Take a line in, and return whether it may be part of a cause."""
        if self._open and not (_frames(line) and isinstance(self._open, LineBlock)):
            if self._open.take(number, line):
                self._remember(number, line)
                return True
            self._close()
        is_suspicious = False
        if line[:1] == "[" and (progress := PROGRESS.match(line)):
            if progress[1] in {"1", progress[2]}:
                self._forget()
        elif line and not (self._ninja and best(self._ninja.matches.values())):
            is_suspicious = self._judge(number, line)
        self._remember(number, line)
        return is_suspicious

    def diagnosis(self, total: int) -> Diagnosis:
        if self._open:
            self._close()
        block = self._ninja or self._fatal or self._doubtful
        if not block:
            found = Found.WRAPPER if self._wrapper else Found.TAIL
            last = self._wrapper or list(self._recent)
            return Diagnosis(found=found, lines=tuple(excerpt(*line) for line in last), total=total)
        return _diagnosis(block, total)

    def _remember(self, number: int, line: str) -> None:
        if line:
            self._recent.append((number, line))

    def _forget(self) -> None:
        """Discard candidates: ninja starts or has finished, so nothing before was fatal."""
        if not isinstance(self._fatal, CMakeBlock):
            self._fatal = None
        self._doubtful = None
        self._wrapper = []

    def _judge(self, number: int, line: str) -> bool:
        """Open a block if a line is the start of one; return whether it is suspicious."""
        if line.startswith(FAILED):
            self._close()
            self._open = NinjaBlock(self._known, self._limit, number, line)
            return True
        if self._fatal or self._ninja:
            return False
        if line.startswith(_DULL) or (len(line) > _LONG and _is_command(line)):
            return False
        if _frames(line):
            self._frame(number, line)
        elif matches := self._known.matches(line):
            self._line(number, line, {match.severity for match in matches})
        else:
            return False
        return True

    def _frame(self, number: int, line: str) -> None:
        """Open the block whose first line this is."""
        last = self._recent[-1][1] if self._recent else ""
        self._close()
        if line.lstrip().startswith(CMAKE_ERROR):
            self._open = CMakeBlock(self._known, self._limit, number, line)
        elif line.lstrip().startswith(CMAKE_WARNING) or last.startswith("Exception ignored "):
            self._open = IgnoredBlock(self._known, line)
            self._open.take(number, line)
            return
        else:
            self._open = PythonBlock(self._known, self._limit, line)
        if self._doubtful:
            self._open.adopt(self._doubtful, number)

    def _line(self, number: int, line: str, severities: set[LineSeverity]) -> None:
        """Open a block for a single line, or remember that something failed."""
        if severities & {LineSeverity.FATAL, LineSeverity.DOUBTFUL}:
            self._open = LineBlock(self._known, self._limit, self._recent)
            self._open.take(number, line)
        elif LineSeverity.WRAPPER in severities and not self._wrapper:
            self._wrapper = [*self._recent, (number, line)]

    def _close(self) -> None:
        block, self._open = self._open, None
        if block is None or isinstance(block, IgnoredBlock):
            return
        block.close()
        if isinstance(block, NinjaBlock):
            if not self._ninja or (
                best(block.matches.values()) and not best(self._ninja.matches.values())
            ):
                self._ninja = block
        elif block.severity == LineSeverity.WRAPPER:
            self._wrapper = self._wrapper or [(n, line.text) for n, line in block.lines.items()]
        elif block.severity == LineSeverity.DOUBTFUL:
            self._doubtful = block
        elif not self._fatal:
            self._fatal = block


def _diagnosis(block: LogBlock, total: int) -> Diagnosis:
    """Return the diagnosis of a block."""
    lines, match = block.evidence()
    if not match:
        return Diagnosis(found=block.found, lines=lines, total=total)
    failure = match.failure
    return Diagnosis(
        found=block.found,
        lines=lines,
        total=total,
        name=match.name,
        kind=failure.kind,
        title=match.fill(failure.title),
        cause=match.fill(failure.cause),
        fix=match.fill(failure.fix),
    )
