"""The layout of all reports for people: tables, indented lines, and counts of what is left out.

Rich is imported when something is laid out, so that reports can be imported without it.
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
"""How many digits of a fingerprint are enough to distinguish two."""

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}

Lines = Iterator["RenderableType"]
"""The text of a report: tables and lines, one below the other."""


def styled(text: str, style: str = "") -> "Text":
    """Text of our own in a style; where it is longer than a line, it is broken anywhere."""
    from rich.text import Text  # noqa: PLC0415

    return Text(text, style=style, overflow="fold")


class _Verbatim:
    """A line that is never wrapped; rich joins texts, and forgets that one was not to be."""

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
    """A column whose text continues in the next line, in the middle of a word if need be."""
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
    """A table without lines; a tight one has one space between columns, to fit 60 of them."""
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
    """A line or table that is moved to the right, and stays there where it is wrapped."""
    from rich.padding import Padding  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    line = styled(printable(item), style) if isinstance(item, str) else item
    if isinstance(line, Text):
        line.overflow = "fold"
    return Padding(line, (0, 0, 0, indent))


def and_more(count: int, indent: int) -> Lines:
    """Say how many things are not listed, if there are any."""
    if count > 0:
        yield indented(f"and {count:,} more", indent, style="dim")
