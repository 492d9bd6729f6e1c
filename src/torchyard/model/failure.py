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

    A `fatal` line ends the step. After a `doubtful` line a step may continue: downloads are
    retried, a missing command may be optional. A `silent` line never ends a step: something
    requested is left out. A `wrapper` only repeats that something else failed. A `boundary`
    is where a new part begins: nothing before it was fatal.
    """

    FATAL = "fatal"
    DOUBTFUL = "doubtful"
    SILENT = "silent"
    WRAPPER = "wrapper"
    BOUNDARY = "boundary"


class Certainty(StrEnum):
    """How certain a diagnosis is.

    `certain`: the line names the cause. `likely`: the line usually has this cause, or names the
    symptom only. `guess`: the lines were chosen only by their position in the log.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


class ExtensionRemedy(Value, kw_only=True):
    """The remedy for an extension built by torchyard; `add` are lines for its torchyard.toml.

    If the project reads a variable whose name matches one of `switches`, `set` are the lines.
    """

    fix: str
    add: str = ""
    switches: tuple[str, ...] = ()
    set: str = ""


class Failure(Value, kw_only=True):
    """A known failure: how to recognise it, its cause and its remedy.

    The text before the line must match `context`; `<name>` in it is the match of that group in
    `pattern`. `certain` is false if the line has several possible causes, of which the named one
    is the most frequent. `evidence` are patterns for other claims of the title: without a match in
    the line or before it, the diagnosis is only likely. `find` is a pattern for the project's line
    that causes the failure, if the log names none.
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
    """A line of a file; the column is 0 if unknown."""

    file: str
    line: int
    column: int = 0

    @property
    def is_foreign(self) -> bool:
        """Whether the file belongs to the system or to a package, not to the project."""
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
    """The lines of a log that show why a step failed, and the failure if it is known.

    `line` is the most significant line. `wrapper` and `tail` mean that no error was
    recognised: the lines are those above the first sign of a failure, or the log's last lines.
    `unit` is the compiled file, `times` how often the log has the same failure. `where`
    is the line of code that the log names; `find` is a pattern for it if the log names none.
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

        A job that needs the network without access to it fails anywhere.
        """
        return self.kind != Kind.BUILD and (network or self.kind != Kind.NETWORK)


class LogDiagnosis(Value, kw_only=True):
    """The diagnoses of a log, the most probable first, and what was left out."""

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
    """A literal in a branch of a pattern; `first` if only spaces can precede it."""

    text: str
    first: bool


def literals(pattern: str) -> tuple[str, ...]:
    """Return one literal for each branch of a pattern; a text without any of them can't match.

    It is the branch's longest literal, the rarest in a log; empty if the branch has none.
    """
    return tuple(literal.text for literal in pattern_literals(pattern))


def pattern_literals(pattern: str) -> Iterator[PatternLiteral]:
    """Yield the literal of each branch, and whether it starts a line."""
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
