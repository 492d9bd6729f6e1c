"""Find the lines of a log that explain why a step failed.

A single pass skips most lines unread: a build prints hundreds of thousands of compile commands of
thousands of characters each. Causes, the best first:

1. the first command that failed under ninja, with its output;
2. an error that names its cause: the first one of the highest priority;
3. the first other error: a CMake error, a traceback, a line with a fatal pattern;
4. the last error that a step may survive, such as a failed download;
5. the lines above the first report that something else failed;
6. the last lines of the log.

When ninja starts or finishes, or CI begins a step, 2 to 5 are discarded: they were not fatal.

The time is bounded whatever a step prints: of a log full of errors, only head and tail are read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import BinaryIO

from torchyard.model.failure import (
    Certainty,
    Diagnosis,
    Failure,
    Found,
    LineSeverity,
    LogDiagnosis,
)
from torchyard.run.failure_patterns import SPECIFIC, FailurePatterns, Match, best
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
from torchyard.run.log_text import LogText, NumberedLine, pieces_of, pieces_of_lines

LIMIT = 12
TAIL = 8
_LONG = 400
"""Longer lines count as commands unless they look different."""
_COMMAND_HEAD = 200
_EFFORT = 2_000_000
"""Budget for a log's head, in short ordinary lines: a few seconds."""
_SUSPICIOUS = 50
"""The cost of a suspicious line."""
_SHORT = 100
"""Longer lines cost more."""
_GENERAL = 8
"""A failure with a lower priority only reports an error, without its cause."""
_FLAG = re.compile(r" [-/][A-Za-z]")
_DULL = ("-- ", "copying ", "creating ", "adding ", "running ", "writing ", "Installing ")
"""Harmless lines of CMake and setuptools, such as `-- Performing Test X - Failed`."""
_VARIABLE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,64}\b|\d+|/tmp/\S+")
"""Text that differs between two logs of the same build."""
_TEMPLATES = 100_000
_FRAMES = (FAILED, TRACEBACK, CMAKE_ERROR, *CMAKE_WARNING)


def diagnose_log(
    lines: Iterable[str], failures: Mapping[str, Failure], *, limit: int = LIMIT
) -> Diagnosis:
    """Diagnose the lines of a failed step's log."""
    return diagnose_pieces(pieces_of_lines(lines), failures, limit=limit).causes[0]


def diagnose_stream(
    stream: BinaryIO, failures: Mapping[str, Failure], *, passed: AbstractSet[str] = frozenset()
) -> LogDiagnosis:
    """Diagnose a log, without lines that are also in logs of passed builds."""
    return diagnose_pieces(pieces_of(stream), failures, passed=passed)


def diagnose_pieces(
    pieces: Iterable[bytes],
    failures: Mapping[str, Failure],
    *,
    limit: int = LIMIT,
    passed: AbstractSet[str] = frozenset(),
) -> LogDiagnosis:
    """Diagnose a log given in pieces."""
    known = _patterns(failures)
    text = LogText(pieces, known.signs)
    return _Reader(LogMatcher(known, text, passed), text, limit).read()


def templates_of(pieces: Iterable[bytes], failures: Mapping[str, Failure]) -> set[str]:
    """Return the suspicious lines of a log, without text that differs between builds."""
    known = _patterns(failures)
    text = LogText(pieces, known.signs)
    found: set[str] = set()
    while len(found) < _TEMPLATES and (line := text.next_sign(edges=False)) is not None:
        if known.matches(line):
            found.add(_template(line))
    return found


_LAST: list[tuple[Mapping[str, Failure], FailurePatterns]] = []


def _patterns(failures: Mapping[str, Failure]) -> FailurePatterns:
    """Return the patterns of a table, cached until another table is used."""
    if not _LAST or _LAST[0][0] is not failures:
        _LAST[:] = [(failures, FailurePatterns(failures, _FRAMES))]
    return _LAST[0][1]


def _template(line: str) -> str:
    return _VARIABLE.sub("#", line.strip())


class LogMatcher:
    """Matches known failures in a log."""

    def __init__(self, known: FailurePatterns, text: LogText, passed: AbstractSet[str]) -> None:
        self._known = known
        self._text = text
        self._passed = passed

    def matches(self, line: str) -> list[Match]:
        """Return the failures that a line matches in its context."""
        found = self._known.matches(line)
        if not found or (self._passed and _template(line) in self._passed):
            return []
        before = self._text.before
        return [match.with_evidence(before) for match in found if match.fits(before)]


def _frames(line: str) -> bool:
    """Return whether a line opens a block."""
    if line.startswith(FAILED) or line.endswith(TRACEBACK):
        return True
    return "CMake" in line[:40] and line.lstrip().startswith((CMAKE_ERROR, *CMAKE_WARNING))


def _is_command(line: str) -> bool:
    """Return whether a long line is a command, rather than a message about one.

    A message: `sh: line 1: 42 Killed c++ -c`.
    """
    if ":" not in line:
        return True
    flag = _FLAG.search(line, 0, _COMMAND_HEAD)
    return flag is not None and line.find(": ", 0, flag.start()) < 0


class _Reader:
    """The state of one pass over a log."""

    def __init__(self, known: LogMatcher, text: LogText, limit: int) -> None:
        self._known = known
        self._text = text
        self._limit = limit
        self._open: LogBlock | None = None
        self._ninja: LogBlock | None = None
        self._fatal: dict[str, LogBlock] = {}
        self._doubtful: dict[str, LogBlock] = {}
        self._lost: dict[str, LogBlock] = {}
        self._wrapper: list[NumberedLine] = []
        self._has_failed = False
        self._times: Counter[str] = Counter()

    def read(self) -> LogDiagnosis:
        """Read the log, and return its diagnosis."""
        effort = 0
        while (line := self._next()) is not None:
            cost = _SUSPICIOUS if self._take(self._text.number, line) else 1
            effort += cost * (1 + len(line) // _SHORT)
            if effort > _EFFORT:
                self._text.jump()
                effort = -(1 << 60)
        self._close()
        total = self._text.number
        lost = [_diagnosis(block, total, self._times) for block in self._lost.values()]
        return LogDiagnosis(total=total, causes=tuple(self._causes(total)), lost=tuple(lost))

    def _next(self) -> str | None:
        if self._open:
            return self._text.next()
        return self._text.next_sign(edges=bool(self._fatal or self._doubtful or self._wrapper))

    def _causes(self, total: int) -> list[Diagnosis]:
        """Return the diagnoses, the best first."""
        blocks = sorted(self._fatal.values(), key=_rank)
        if self._ninja:  # a command may have printed its error before ninja reports it
            is_known = best(self._ninja.matches.values()) is not None
            blocks.insert(0 if is_known else _first_general(blocks), self._ninja)
        blocks += reversed(self._doubtful.values())
        if blocks:
            return [_diagnosis(block, total, self._times) for block in blocks]
        found = Found.WRAPPER if self._wrapper else Found.TAIL
        last = tuple(excerpt(*line) for line in self._wrapper or self._text.recent(TAIL))
        line = last[-1] if last else None
        return [Diagnosis(found=found, line=line, lines=last, total=total)]

    def _take(self, number: int, line: str) -> bool:
        """Process a line, and return whether it may be part of a cause."""
        if self._open and not (_frames(line) and isinstance(self._open, LineBlock)):
            if self._open.take(number, line):
                return True
            self._close()
        if line[:1] == "[" and (progress := PROGRESS.match(line)):
            if progress[1] in {"1", progress[2]}:
                self._forget()
            return False
        return bool(line) and self._judge(number, line)

    def _forget(self) -> None:
        """Discard candidates: progress shows that no earlier error was fatal."""
        self._fatal = {k: v for k, v in self._fatal.items() if isinstance(v, CMakeBlock)}
        self._doubtful = {}
        self._wrapper = []

    def _begin(self, *, proven: bool) -> None:
        """Discard candidates: a step begins only after a success.

        Unless that is proven, keep those that name a cause: CI also begins its final steps after a
        failure.
        """
        if proven:
            self._ninja, self._fatal, self._has_failed = None, {}, False
        elif self._has_failed:
            return
        self._fatal = {k: v for k, v in self._fatal.items() if _rank(v)[0] <= -SPECIFIC}
        self._doubtful = {}
        self._wrapper = []

    def _judge(self, number: int, line: str) -> bool:
        """Open a block if a line starts one; return whether the line is suspicious."""
        if line.startswith(FAILED):
            self._close()
            self._open = NinjaBlock(self._known, self._limit, number, line)
            return True
        if len(line) > _LONG and _is_command(line):
            return False
        settled = self._ninja is not None and best(self._ninja.matches.values()) is not None
        if _frames(line) and not settled:
            self._frame(number, line)
            return True
        matches = self._known.matches(line)
        if line.startswith(_DULL):
            matches = [match for match in matches if match.severity == LineSeverity.SILENT]
        if settled:
            matches = [match for match in matches if match.severity == LineSeverity.BOUNDARY]
        if matches:
            self._line(number, line, matches)
        return bool(matches)

    def _frame(self, number: int, line: str) -> None:
        """Open a block at its first line."""
        last = next((text for _, text in self._text.recent(1)), "")
        self._close()
        if line.lstrip().startswith(CMAKE_ERROR):
            self._open = CMakeBlock(self._known, self._limit, number, line)
        elif line.lstrip().startswith(CMAKE_WARNING) or last.startswith("Exception ignored "):
            self._open = IgnoredBlock(self._known, self._limit, line)
            self._open.take(number, line)
            return
        else:
            self._open = PythonBlock(self._known, self._limit, line)
        for block in list(self._doubtful.values())[-1:]:
            self._open.adopt(block, number)

    def _line(self, number: int, line: str, matches: list[Match]) -> None:
        """Open a block for a single line, or remember the line's meaning."""
        severities = {match.severity for match in matches}
        if severities & {LineSeverity.FATAL, LineSeverity.DOUBTFUL}:
            self._open = LineBlock(self._known, self._limit, self._text.recent(TAIL))
            self._open.take(number, line)
        elif LineSeverity.BOUNDARY in severities:
            self._begin(proven=any(match.specific for match in matches))
        elif LineSeverity.SILENT in severities:
            block = LogBlock(self._known, self._limit)
            block.look(number, line)
            self._lose(block)
        else:
            self._has_failed = True
            self._wrapper = self._wrapper or [*self._text.recent(TAIL), (number, line)]

    def _close(self) -> None:
        block, self._open = self._open, None
        if block is None:
            return
        block.close()
        self._lose(block)
        if isinstance(block, IgnoredBlock):
            return
        match = best(block.matches.values())
        key = match.name if match else block.found
        self._times[key] += 1
        if isinstance(block, NinjaBlock):
            if not self._ninja or (match and not best(self._ninja.matches.values())):
                self._ninja = block
        elif block.severity == LineSeverity.WRAPPER:
            self._has_failed = True
            self._wrapper = self._wrapper or [(n, line.text) for n, line in block.lines.items()]
        elif block.severity == LineSeverity.DOUBTFUL:
            self._doubtful.pop(key, None)
            self._doubtful[key] = block
        elif key not in self._fatal or self._fatal[key].repeats(block):
            self._fatal[key] = block

    def _lose(self, block: LogBlock) -> None:
        """Remember the part that a block reports as left out."""
        for match in block.matches.values():
            if match.severity == LineSeverity.SILENT:
                self._lost.setdefault(match.title, block.only(match))


def _rank(block: LogBlock) -> tuple[int, int]:
    """Return the rank of a fatal block: by priority if it names a cause."""
    match = best(block.matches.values())
    if not match or SPECIFIC > match.failure.priority >= _GENERAL:
        return (_GENERAL - SPECIFIC, block.first)
    return (-match.failure.priority, block.first)


def _first_general(blocks: list[LogBlock]) -> int:
    """Return the index of the first ranked block that names no cause."""
    return next((i for i, block in enumerate(blocks) if _rank(block)[0] > -SPECIFIC), len(blocks))


def _diagnosis(block: LogBlock, total: int, times: Mapping[str, int]) -> Diagnosis:
    """Return the diagnosis of a block."""
    lines, match = block.evidence()
    if not match:
        return Diagnosis(
            found=block.found,
            line=lines[-1] if lines else None,
            lines=lines,
            total=total,
            certainty=Certainty.GUESS,
            where=block.where,
            unit=block.unit,
        )
    failure = match.failure
    is_certain = failure.certain and match.proven and match.specific
    is_certain = is_certain and failure.severity != LineSeverity.DOUBTFUL
    return Diagnosis(
        found=block.found,
        line=block.telling or (lines[0] if lines else None),
        lines=lines,
        total=total,
        certainty=Certainty.CERTAIN if is_certain else Certainty.LIKELY,
        name=match.name,
        kind=failure.kind,
        title=match.title,
        cause=match.fill(failure.cause),
        fix=match.fill(failure.fix),
        extension=match.fill_remedy(),
        where=block.where,
        find=match.fill(failure.find, re.escape),
        refs=failure.refs,
        unit=block.unit,
        times=max(1, times[match.name]),
    )
