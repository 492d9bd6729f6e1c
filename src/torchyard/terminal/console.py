"""Standard output and error, with colour only where it is wanted.

All output of commands goes through here. Control characters in text are escaped: see `untrusted`.
Bytes are data, such as JSON, and are written unchanged; `relay` is for logs.
"""

import codecs
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from torchyard.errors import Diagnostic, Span, TorchyardError
from torchyard.terminal.untrusted import neutral, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

CLOSED_PIPE = 141
MESSAGE = "torchyard.message"
"""The audit event of text on standard error."""
_UNBOUNDED = 1000
_LINE_ENDS = r"(?m) +(?=(?:\x1b\[[0-9;]*m)*$)"


_used: set[TextIO] = set()


def mark_printed() -> None:
    """Record a write to standard output by other means."""
    _used.add(sys.stdout)


def has_printed() -> bool:
    """Return whether anything was written to standard output."""
    return sys.stdout in _used


def console(*, talk: bool = False) -> "Console":
    """A console on standard output, or on standard error for messages.

    Rich honours NO_COLOR, FORCE_COLOR, COLUMNS and the terminal's width. Without a terminal,
    lines are not wrapped, so that programs can search them.
    """
    from torchyard.terminal.safe_console import (  # noqa: PLC0415 - 40 ms that plain output does not need
        SafeConsole,
    )

    out = SafeConsole(stderr=talk, highlight=False, emoji=False, markup=False)
    if not os.environ.get("COLUMNS", "").strip("0"):
        out.width = out.width if out.is_terminal and out.width else _UNBOUNDED
    return out


def show(*report: "RenderableType") -> None:
    """Print the parts of a report on standard output."""
    _put(sys.stdout, _text(console(), *report))


def talk(*messages: "RenderableType") -> None:
    """Print messages on standard error."""
    with suppress(OSError):  # standard error is closed
        _put(sys.stderr, _text(console(talk=True), *messages))


def say(line: str) -> None:
    """Print a plain line on standard error, without the import time of `talk`."""
    with suppress(OSError):
        _put(sys.stderr, f"{neutral(line)}\n")


def _text(out: "Console", *parts: "RenderableType") -> str:
    """Render parts without trailing blanks."""
    with out.capture() as captured:
        for part in parts:
            out.print(part, crop=False)
    return re.sub(_LINE_ENDS, "", captured.get())


def write(data: str | bytes) -> None:
    """Write text, or data of a program, to standard output."""
    _put(sys.stdout, neutral(data) if isinstance(data, str) else data)


def relay(pieces: Iterable[bytes]) -> None:
    """Write a log to standard output: unchanged, or escaped on a terminal."""
    for piece in _relayed(sys.stdout, pieces):
        _put(sys.stdout, piece)


def write_error(data: bytes) -> None:
    """Write the output of a child process to standard error, like `relay`."""
    with suppress(OSError):
        for piece in _relayed(sys.stderr, [data]):
            _put(sys.stderr, piece)


def redraw(line: str) -> None:
    """Replace the last line of standard error, which is a terminal; an empty text erases it."""
    with suppress(OSError):
        _put(sys.stderr, f"\r\x1b[K{printable(line)}")


def _relayed(stream: TextIO | None, pieces: Iterable[bytes]) -> Iterable[bytes]:
    if stream is None or not stream.isatty():
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    for piece in pieces:
        yield neutral(decoder.decode(piece), colours=True).encode()
    yield neutral(decoder.decode(b"", final=True)).encode()


def _put(stream: TextIO | None, data: str | bytes) -> None:
    """Write bytes, whatever the locale; do nothing if the stream is closed."""
    if stream is not None:
        _used.add(stream)
        stream.flush()
        text = data.encode(errors="backslashreplace") if isinstance(data, str) else data
        if stream is sys.stderr:
            sys.audit(MESSAGE, data)
        try:
            stream.buffer.write(text)
            stream.buffer.flush()
        except OSError as error:
            # Python would try to flush the rest of the buffer at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if isinstance(error, BrokenPipeError):
                sys.exit(CLOSED_PIPE)
            raise


def warn(messages: Iterable[str]) -> None:
    """Print warnings."""
    for message in messages:
        talk(_labelled("warning", "yellow", message))


def print_error(error: TorchyardError) -> None:
    """Print an error: what went wrong, where, and what to do."""
    for diagnostic in error.diagnostics:
        talk(*render_diagnostic(diagnostic, console(talk=True).width))


def render_diagnostic(diagnostic: Diagnostic, width: int) -> Iterable["Text"]:
    """Render a diagnostic: what, the line with a caret under it, and a hint."""
    from rich.cells import cell_len  # noqa: PLC0415 - a wide letter takes two columns
    from rich.text import Text  # noqa: PLC0415

    yield _labelled("error", "bold red", diagnostic.what)
    span = diagnostic.span
    if span:
        number = str(span.line)
        margin = " " * len(number)
        yield Text(f"{margin}--> {span.file}:{span.line}:{span.column}", style="dim")
        text, before = _excerpt(span, width - len(f"{number} | "))
        blamed = text[before : before + span.length]
        yield Text(f"{number} | {text}")
        yield Text(f"{margin} | {' ' * cell_len(text[:before])}{'^' * max(1, cell_len(blamed))}")
    if diagnostic.hint:
        yield _labelled("hint", "cyan", diagnostic.hint)


def _excerpt(span: Span, width: int) -> tuple[str, int]:
    """Return the part of a line that fits and contains the span, and the span's offset in it."""
    line = span.text.replace("\t", " ")
    text, before = printable(line), len(printable(line[: span.column - 1]))
    if len(text) <= width:
        return text, before
    cut = max(0, min(before - width // 4, len(text) - width))
    return text[cut : cut + width], before - cut


def _labelled(label: str, style: str, message: str) -> "Text":
    from rich.text import Text  # noqa: PLC0415

    return Text.assemble((f"{label}: ", style), message)
