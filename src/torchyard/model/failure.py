"""What is known about failures, and what a log tells about one."""

import re
from collections.abc import Iterator
from enum import StrEnum

from torchyard.model.values import Value


class Kind(StrEnum):
    """What a failure is the fault of."""

    MEMORY = "memory"
    DISK = "disk"
    NETWORK = "network"
    MACHINE = "machine"
    BUILD = "build"


class LineSeverity(StrEnum):
    """How much a line proves.

    A `fatal` one ends the step. After a `doubtful` one a step may well go on: downloads are tried
    again, a missing command may be an optional one. A `silent` one never ends a step, and a
    `wrapper` only repeats that something else failed.
    """

    FATAL = "fatal"
    DOUBTFUL = "doubtful"
    SILENT = "silent"
    WRAPPER = "wrapper"


class Failure(Value, kw_only=True):
    """A failure that is known: how to recognise it, why it happens, what helps."""

    title: str
    stage: str
    kind: Kind
    severity: LineSeverity = LineSeverity.FATAL
    priority: int
    pattern: str
    cause: str
    fix: str
    refs: tuple[str, ...] = ()
    example: str


class LogLine(Value, kw_only=True):
    """A line of a log; the first one has the number 1."""

    number: int
    text: str


class Found(StrEnum):
    """By what the telling lines were found."""

    NINJA = "ninja"
    CMAKE = "cmake"
    PYTHON = "python"
    LINE = "line"
    WRAPPER = "wrapper"
    TAIL = "tail"


class Telling(Value, kw_only=True):
    """The few lines of a log that tell why a step failed, and what is known about it.

    `wrapper` and `tail` are admissions that no error was recognised: the lines are those above the
    first sign of a failure, or the last ones of the log.
    """

    found: Found
    lines: tuple[LogLine, ...]
    total: int
    name: str | None = None
    kind: Kind = Kind.BUILD
    title: str | None = None
    cause: str | None = None
    fix: str | None = None

    def elsewhere(self, *, network: bool) -> bool:
        """Whether the same job may well succeed on another machine.

        A job that was given no network and wants one would want it anywhere.
        """
        return self.kind != Kind.BUILD and (network or self.kind != Kind.NETWORK)


_TOKEN = re.compile(
    r"""
      (?P<escape> \\. )
    | (?P<set>    \[ \^? \]? (?: \\. | [^\]\\] )* \] )
    | (?P<open>   \( (?: \? (?: P<\w+> | [:=!] | <[=!] ) )? )
    | (?P<repeat> (?: [*+?] | \{ \d* ,? \d* \} ) \?? )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL,
)
_LONG_ENOUGH = 6
"""A literal of this length is rare; a shorter one is taken only if there is no other."""


def literals(pattern: str) -> tuple[str, ...]:
    """One literal for each branch of a pattern: what a text without all of them can't match.

    It is the first good one, so that where a match spans lines, it stands on the first of them. An
    empty string says that a branch has none.
    """
    return tuple(
        next((run for run in runs if len(run) >= _LONG_ENOUGH), max(runs, key=len, default=""))
        for runs in _branches(pattern)
    )


def _branches(pattern: str) -> Iterator[list[str]]:
    """The literal runs of each branch, those inside groups left out."""
    runs = [""]
    depth = 0
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == ")":
            depth -= 1
        elif token["open"]:
            depth += 1
            runs.append("")
        elif depth:
            continue
        elif text == "|":
            yield runs
            runs = [""]
        elif token["repeat"]:
            runs[-1] = runs[-1] if text[0] == "+" else runs[-1][:-1]
            runs.append("")
        elif token["set"] or text in {".", "^", "$"} or (token["escape"] and text[1].isalnum()):
            runs.append("")
        else:
            runs[-1] += text[-1]
    yield runs
