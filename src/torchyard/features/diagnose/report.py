"""Why a build failed."""

from collections.abc import Sequence
from typing import Literal

from torchyard.config.tables import dump
from torchyard.errors import UsageError
from torchyard.model.failure import Certainty, Diagnosis, Found, LogLine
from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.run.draft_failure import draft_failure
from torchyard.terminal.console import say
from torchyard.terminal.tables import (
    Lines,
    and_more,
    assembled,
    folded,
    number,
    styled,
    table,
    verbatim,
    word,
)
from torchyard.terminal.untrusted import printable

_OTHERS = 5
"""The most less probable causes to list."""

_STYLES = {Certainty.CERTAIN: "bold red", Certainty.LIKELY: "bold yellow", Certainty.GUESS: "bold"}
_UNKNOWN = {
    Found.TAIL: "No failure is recognised; the log ends with",
    Found.WRAPPER: "Something failed that is not recognised, above",
    Found.NINJA: "A command failed, and its output is not recognised",
    Found.CMAKE: "CMake failed, with a message that is not recognised",
    Found.PYTHON: "A Python program failed",
    Found.LINE: "A program failed",
}


class DiagnoseReport(Reported, kw_only=True):
    """`torchyard diagnose --json`: why a build failed, the most probable cause first.

    `lost` are requested parts that were left out without an error. `passed` is the number of logs
    of passed builds whose lines were ignored.
    """

    version: Literal[1] = 1
    log: str
    lines: int
    passed: int
    causes: Sequence[Diagnosis]
    lost: Sequence[Diagnosis]


def diagnose_text(report: DiagnoseReport, *, learn: bool) -> Lines:
    """Show the cause with its lines and fix, then others, and parts that were left out."""
    first, *others = report.causes
    if learn:
        yield from _draft(first)
        return
    heading = f"{printable(report.log)}: {show_count(report.lines, 'line')}"
    if report.passed:
        logs = show_count(report.passed, "log")
        heading += f", without what {logs} of builds that passed say, too"
    yield styled(heading, "dim")
    yield ""
    yield from _cause(first)
    if others:
        yield ""
        yield styled("less probable", "bold")
        yield from _list(others[:_OTHERS])
        yield from and_more(len(others[_OTHERS:]), 0)
    if report.lost:
        yield ""
        yield styled("left out without an error", "bold")
        yield from _list(report.lost)


def _draft(cause: Diagnosis) -> Lines:
    """Yield an entry of known failures for the log's most telling line."""
    if cause.line is None:
        msg = "the log is empty"
        raise UsageError(msg)
    name, entry = draft_failure(cause)
    yield verbatim(dump({name: entry}, "").rstrip("\n"))
    if cause.name:
        say(f"note: this line is known already, as {cause.name}")
    say("hint: write cause and fix, save it, and try it with --failures FILE")


def _cause(cause: Diagnosis) -> Lines:
    title = printable(cause.title or _UNKNOWN[cause.found])
    yield assembled((title, _STYLES[cause.certainty]), (f"  ({cause.certainty})", "dim"))
    if cause.lines:
        quoted = (_quoted(line, cause.line) for line in cause.lines)
        yield table((word(), number(), folded()), quoted, header=False, tight=True)
    rows = [
        (name, styled(printable(text)))
        for name, text in (
            ("unit", cause.unit),
            ("times", f"{cause.times:,}" if cause.times > 1 else None),
            ("where", f"{cause.where.file}:{cause.where.line}" if cause.where else None),
            ("cause", cause.cause),
            ("fix", cause.fix),
            ("see", ", ".join(cause.refs)),
            ("name", cause.name),
        )
        if text
    ]
    if rows:
        yield ""
        yield table((word(style="cyan"), folded()), rows, header=False)


def _quoted(line: LogLine, telling: LogLine | None) -> Lines:
    is_telling = telling is not None and telling.number == line.number
    style = "bold" if is_telling else ""
    yield styled(">" if is_telling else " ", "red")
    yield styled(f"{line.number:,}", "dim")
    yield styled(printable(line.text), style)


def _list(causes: Sequence[Diagnosis]) -> Lines:
    rows = (
        (
            f"{cause.line.number:,}" if cause.line else "",
            cause.certainty,
            styled(printable(cause.title or _UNKNOWN[cause.found])),
        )
        for cause in causes
    )
    yield table((number("line"), word(), folded("what")), rows, tight=True)
