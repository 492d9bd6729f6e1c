"""How far a long reading is, on a terminal and elsewhere."""

import fcntl
import os
import pty
import struct
import termios
import time
from collections.abc import Iterator
from typing import NamedTuple, TextIO

import pytest

from torchyard.terminal.progress import ProgressLine
from torchyard.terminal.untrusted import printable


class Terminal(NamedTuple):
    """A terminal of 30 columns: what is written there, and what a program sees as its end."""

    end: int
    stream: TextIO

    def said(self) -> bytes:
        """What was written since the last call; what is written takes its time to get there."""
        self.stream.write("\0")
        self.stream.flush()
        said = b""
        while not said.endswith(b"\0"):
            said += os.read(self.end, 4096)
        return said[:-1]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    own, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 30, 0, 0))
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(other, "w", encoding="utf-8") as stream:
        yield Terminal(own, stream)
    os.close(own)


def test_a_line_is_drawn_and_taken_back(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", terminal.stream)
    with ProgressLine("reading a package with a long name", 200) as progress:
        time.sleep(0.25)
        progress(50)
        assert terminal.said() == "\r\x1b[K 25% of 200 B,…ith a long name".encode()
    assert terminal.said() == b"\r\x1b[K"


def test_what_is_quick_is_never_drawn(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal.stream)
    monkeypatch.setattr("torchyard.terminal.progress._INTERVAL", 60)
    with ProgressLine("reading", 0) as progress:
        progress(10)
    assert terminal.said() == b""


@pytest.mark.parametrize("kind", ["dumb", "none"])
def test_nothing_is_drawn_elsewhere(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr("sys.stderr", terminal.stream if kind == "dumb" else None)
    with ProgressLine("reading", 100) as progress:
        time.sleep(0.25)
        progress(50)
    assert terminal.said() == b""


def test_without_a_terminal_a_line_is_printed_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An audit of all of PyPI ran for 700 seconds in silence."""
    monkeypatch.setattr("torchyard.terminal.progress._EVERY", 0)
    with ProgressLine("fetching 3 files", 2_400_000_000) as progress:
        progress(120_000_000)
    with ProgressLine("downloading torch", 0) as progress:
        progress(120_000_000)
        progress.reach(130_000_000)
    with ProgressLine("checking numpy, 3 files so far", 1000, "projects") as progress:
        progress.reach(8)
    assert capfd.readouterr().err.splitlines() == [
        "  5% of 2.4 GB, fetching 3 files",
        "120 MB, downloading torch",
        "130 MB, downloading torch",
        "  1% of 1,000 projects, checking numpy, 3 files so far",
    ]


def test_strangers_do_not_move_the_cursor() -> None:
    assert printable("a\x1b[2Jb\r\n\u202ec") == "a\\x1b[2Jb\\r\\n\\u202ec"
    assert printable("libtorch – ä") == "libtorch – ä"
