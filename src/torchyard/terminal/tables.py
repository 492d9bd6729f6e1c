"""The layout of text reports: tables, indented lines, and counts of omitted rows.

Rich is imported only when something is laid out: its import takes long.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchyard.model.severity import Severity
from torchyard.terminal.untrusted import printable

if TYPE_CHECKING:  # 40 ms that JSON does not need
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Column, Table
    from rich.text import Text

SHORT = 12
"""Digits that are enough to tell fingerprints apart."""

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}

Lines = Iterator["RenderableType"]
"""The text of a report: tables and lines, top to bottom."""


def styled(text: str, style: str = "") -> "Text":
    """Our own text in a style; a long line is broken anywhere."""
    from rich.text import Text  # noqa: PLC0415

    return Text(text, style=style, overflow="fold")


class _Verbatim:
    """A line that is never wrapped: rich drops this setting when it joins texts."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(
        self, _console: "Console", _options: "ConsoleOptions"
    ) -> Iterator["Segment"]:
        from rich.segment import Segment  # noqa: PLC0415

        yield Segment(self._text)
        yield Segment.line()


def verbatim(text: str) -> "RenderableType":
    """A line to be copied, which is never wrapped."""
    return _Verbatim(text)


def assembled(*parts: str | tuple[str, str]) -> "Text":
    """A line of text whose parts may have styles."""
    from rich.text import Text  # noqa: PLC0415

    return Text.assemble(*parts, overflow="fold")


def word(heading: str = "", style: str = "") -> "Column":
    """A column that is never wrapped."""
    from rich.table import Column  # noqa: PLC0415

    return Column(heading, no_wrap=True, style=style)


def number(heading: str = "") -> "Column":
    """A column that is never wrapped, and aligned to the right."""
    from rich.table import Column  # noqa: PLC0415

    return Column(heading, no_wrap=True, justify="right")


def centred(heading: str = "") -> "Column":
    """A column that is never wrapped, and centred."""
    from rich.table import Column  # noqa: PLC0415

    return Column(heading, no_wrap=True, justify="center")


def folded(heading: str = "", ratio: int | None = None) -> "Column":
    """A column whose text continues in the next line, if need be within a word."""
    from rich.table import Column  # noqa: PLC0415

    return Column(heading, overflow="fold", ratio=ratio)


def wrapped(heading: str = "", ratio: int | None = None) -> "Column":
    """A column whose text continues in the next line, between words."""
    from rich.table import Column  # noqa: PLC0415

    return Column(heading, ratio=ratio)


def table(
    columns: Sequence["Column | str"],
    rows: Iterable[Iterable["RenderableType"]] = (),
    *,
    header: bool = True,
    tight: bool = False,
) -> "Table":
    """A table without rules; `tight` leaves one space between columns, to fit 60 of them."""
    from rich.table import Table  # noqa: PLC0415

    made = Table(
        *columns,
        box=None,
        pad_edge=False,
        padding=(0, 1 if tight else 2, 0, 0),
        show_header=header,
        header_style="bold",
    )
    for row in rows:
        made.add_row(*row)
    return made


def indented(item: "RenderableType", indent: int, style: str = "") -> "RenderableType":
    """An indented line or table; wrapped lines are indented as well."""
    from rich.padding import Padding  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    line = styled(printable(item), style) if isinstance(item, str) else item
    if isinstance(line, Text):
        line.overflow = "fold"
    return Padding(line, (0, 0, 0, indent))


def and_more(count: int, indent: int) -> Lines:
    """Say how many items are not listed, if any."""
    if count > 0:
        yield indented(f"and {count:,} more", indent, style="dim")
