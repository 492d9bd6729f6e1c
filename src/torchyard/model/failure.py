"""Known failures, and the diagnosis of a log."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from torchyard.model.values import Reported, Value


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
    retried, a missing command may be optional. A `silent` one never ends a step: something that
    was asked for is left out. A `wrapper` only repeats that something else failed. A `boundary`
    is where something new begins: before it, nothing was fatal.
    """

    FATAL = "fatal"
    DOUBTFUL = "doubtful"
    SILENT = "silent"
    WRAPPER = "wrapper"
    BOUNDARY = "boundary"


class Certainty(StrEnum):
    """How much speaks for a diagnosis.

    `certain`: the line itself names the cause. `likely`: the line usually has this cause, or says
    what is wrong and not why. `guess`: only the place of the lines in the log speaks for them.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


class ExtensionRemedy(Value, kw_only=True):
    """What helps an extension that torchyard builds; `add` are lines for its torchyard.toml.

    If the project reads a variable whose name is like one of `switches`, `set` are the lines.
    """

    fix: str
    add: str = ""
    switches: tuple[str, ...] = ()
    set: str = ""


class Failure(Value, kw_only=True):
    """A known failure: how to recognise it, its cause and its remedy.

    `context` is a pattern that the text before the line has to contain; `<name>` in it is what the
    group of that name in `pattern` matched. `certain` is false if the line has several possible
    causes, of which the named one is the most frequent. `evidence` are patterns for all else that
    the title says: without one of them in the line or before it, the diagnosis is only likely.
    `find` is a pattern for the line of the project that causes it, if the log names none.
    """

    title: str
    stage: str
    kind: Kind
    severity: LineSeverity = LineSeverity.FATAL
    priority: int
    pattern: str
    context: str = ""
    certain: bool = True
    evidence: tuple[str, ...] = ()
    cause: str
    fix: str
    extension: ExtensionRemedy | None = None
    find: str = ""
    refs: tuple[str, ...] = ()
    example: str


class SourceLocation(Reported, kw_only=True):
    """A line of a file; the column is 0 if it is not known."""

    file: str
    line: int
    column: int = 0

    @property
    def is_foreign(self) -> bool:
        """Whether the file belongs to the system or to a package, not to what is built."""
        return _FOREIGN.search(self.file) is not None


_FOREIGN = re.compile(r"^<|^/(?:usr|opt|lib)/|/(?:site|dist)-packages/|/lib/python\d|/share/cmake")


class LogLine(Reported, kw_only=True):
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


class Diagnosis(Reported, kw_only=True):
    """The few lines of a log that show why a step failed, and what is known about the failure.

    `line` is the one that tells most. `wrapper` and `tail` are admissions that no error was
    recognised: the lines are those above the first sign of a failure, or the last ones of the log.
    `unit` is what was being compiled, and `times` how often the log has the same failure. `where`
    is the line of code that the log names; `find` a pattern for it, if it names none.
    """

    found: Found
    line: LogLine | None = None
    lines: tuple[LogLine, ...]
    total: int
    certainty: Certainty = Certainty.GUESS
    name: str | None = None
    kind: Kind = Kind.BUILD
    title: str | None = None
    cause: str | None = None
    fix: str | None = None
    extension: ExtensionRemedy | None = None
    where: SourceLocation | None = None
    find: str = ""
    refs: tuple[str, ...] = ()
    unit: str | None = None
    times: int = 1

    def elsewhere(self, *, network: bool) -> bool:
        """Return whether the same job may succeed on another machine.

        A job that needs the network and has no access to it would fail anywhere.
        """
        return self.kind != Kind.BUILD and (network or self.kind != Kind.NETWORK)


class LogDiagnosis(Value, kw_only=True):
    """What a log says: causes of a failure, the most probable first, and what was left out."""

    total: int
    causes: tuple[Diagnosis, ...]
    lost: tuple[Diagnosis, ...]


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


class PatternLiteral(NamedTuple):
    """A text that a branch of a pattern contains; `first` if only spaces can be before it."""

    text: str
    first: bool


def literals(pattern: str) -> tuple[str, ...]:
    """Return one literal for each branch of a pattern; a text without any of them can't match.

    It is the longest one, which is the rarest in a log; empty if a branch has none.
    """
    return tuple(literal.text for literal in pattern_literals(pattern))


def pattern_literals(pattern: str) -> Iterator[PatternLiteral]:
    """Yield the literal of each branch, and whether a line has to begin with it."""
    for start, runs in _branches(pattern):
        text = max(runs, key=len, default="")
        head = next((run for run in runs if run), "")
        yield PatternLiteral(text, first=start and text == head)


_LINE_START = re.compile(r"\^(?:\\s\*| \*)?(?=[\w#](?![*?{]))")


def _branches(pattern: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the literal runs of each branch, except those inside groups.

    With each, yield whether the branch begins with the start of a line and a literal.
    """
    runs = [""]
    depth = begin = 0
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
            yield _LINE_START.match(pattern, begin) is not None, runs
            runs, begin = [""], token.end()
        elif token["repeat"]:
            runs[-1] = runs[-1] if text[0] == "+" else runs[-1][:-1]
            runs.append("")
        elif token["set"] or text in {".", "^", "$"} or (token["escape"] and text[1].isalnum()):
            runs.append("")
        else:
            runs[-1] += text[-1]
    yield _LINE_START.match(pattern, begin) is not None, runs
