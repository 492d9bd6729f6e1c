"""Known failures, and the diagnosis of a log."""

import re
from collections.abc import Iterator
from enum import StrEnum

from torchyard.model.values import Value


class Kind(StrEnum):
    """What caused a failure."""

    MEMORY = "memory"
    DISK = "disk"
    NETWORK = "network"
    MACHINE = "machine"
    BUILD = "build"


class LineSeverity(StrEnum):
    """How much a line proves.

    A `fatal` one ends the step. After a `doubtful` one a step may continue: downloads are
    retried, a missing command may be optional. A `silent` one never ends a step, and a
    `wrapper` only repeats that something else failed.
    """

    FATAL = "fatal"
    DOUBTFUL = "doubtful"
    SILENT = "silent"
    WRAPPER = "wrapper"


class Failure(Value, kw_only=True):
    """A known failure: how to recognise it, its cause and its remedy."""

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
    """A line of a log; numbers start at 1."""

    number: int
    text: str


class Found(StrEnum):
    """How the relevant lines of a log were found."""

    NINJA = "ninja"
    CMAKE = "cmake"
    PYTHON = "python"
    LINE = "line"
    WRAPPER = "wrapper"
    TAIL = "tail"


class Diagnosis(Value, kw_only=True):
    """The few lines of a log that show why a step failed, and what is known about the failure.

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
        """Return whether the same job may succeed on another machine.

        A job that needs the network and has no access to it would fail anywhere.
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
"""Length from which a literal is rare; shorter ones are used only if there is no other."""


def literals(pattern: str) -> tuple[str, ...]:
    """Return one literal for each branch of a pattern; a text without any of them can't match.

    It is the first suitable one, so that if a match spans lines, it is on the first of them. An
    empty string means that a branch has none.
    """
    return tuple(
        next((run for run in runs if len(run) >= _LONG_ENOUGH), max(runs, key=len, default=""))
        for runs in _branches(pattern)
    )


def _branches(pattern: str) -> Iterator[list[str]]:
    """Yield the literal runs of each branch, except those inside groups."""
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
