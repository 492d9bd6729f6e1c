"""Why a build failed, for people."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.model.failure import Certainty, Found
from torchyard.model.quantity import show_count
from torchyard.reports.diagnose.document import DiagnoseDocument, LogCauseDocument, LogLineDocument
from torchyard.terminal.tables import and_more, folded, number, table, word
from torchyard.terminal.untrusted import printable

_OTHERS = 5
"""How many less probable causes are listed."""

_STYLES = {Certainty.CERTAIN: "bold red", Certainty.LIKELY: "bold yellow", Certainty.GUESS: "bold"}
_UNKNOWN = {
    Found.TAIL: "No failure is recognised; the log ends with",
    Found.WRAPPER: "Something failed that is not recognised, above",
    Found.NINJA: "A command failed, and its output is not recognised",
    Found.CMAKE: "CMake failed, with a message that is not recognised",
    Found.PYTHON: "A Python program failed",
    Found.LINE: "A program failed",
}


def diagnose_report(document: DiagnoseDocument) -> RenderableType:
    """Show the cause with its lines and its fix, then others, and what was left out."""
    told = f"{printable(document.log)}: {show_count(document.lines, 'line')}"
    if document.passed:
        logs = show_count(document.passed, "log")
        told += f", without what {logs} of builds that passed say, too"
    parts: list[RenderableType] = [Text(told, style="dim", overflow="fold"), ""]
    first, *others = document.causes
    parts += _cause(first)
    if others:
        parts += ["", Text("less probable", style="bold"), _list(others[:_OTHERS])]
        parts += and_more(len(others[_OTHERS:]), 0)
    if document.lost:
        parts += ["", Text("left out without an error", style="bold"), _list(document.lost)]
    return Group(*parts)


def _cause(cause: LogCauseDocument) -> Iterator[RenderableType]:
    title = printable(cause.title or _UNKNOWN[cause.found])
    yield Text.assemble(
        (title, _STYLES[cause.certainty]), (f"  ({cause.certainty})", "dim"), overflow="fold"
    )
    if cause.lines:
        quoted = (_quoted(line, cause.line) for line in cause.lines)
        yield table((word(), number(), folded()), quoted, header=False, tight=True)
    rows = [
        (name, Text(printable(text), overflow="fold"))
        for name, text in (
            ("unit", cause.unit),
            ("times", f"{cause.times:,}" if cause.times > 1 else None),
            ("where", cause.where),
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


def _quoted(line: LogLineDocument, telling: LogLineDocument | None) -> tuple[RenderableType, ...]:
    is_telling = telling is not None and telling.number == line.number
    style = "bold" if is_telling else ""
    mark = Text(">" if is_telling else " ", style="red")
    return mark, Text(f"{line.number:,}", style="dim"), Text(printable(line.text), style=style)


def _list(causes: list[LogCauseDocument]) -> RenderableType:
    rows = (
        (
            f"{cause.line.number:,}" if cause.line else "",
            cause.certainty,
            Text(printable(cause.title or _UNKNOWN[cause.found])),
        )
        for cause in causes
    )
    return table((number("line"), word(), folded("what")), rows, tight=True)
