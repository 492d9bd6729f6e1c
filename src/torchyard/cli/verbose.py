"""`-v`: show the commands that are run, the files that are used, and what was decided.

Python tells hooks of every program, file and connection that it opens (PEP 578), and rooms below
tell of decisions in the same way (`host/decisions.py`).
"""

import os
import shlex
import sys
import time
from collections.abc import Callable

from torchyard.config.credentials import without_secrets
from torchyard.host.cache import cache_folder
from torchyard.host.decisions import DECIDED
from torchyard.host.system_view import own_paths
from torchyard.terminal.console import SAID, say
from torchyard.workspace.about import about_lines

LOG = "TORCHYARD_LOG"
"""The variable that tells processes of a build which file they add lines to."""

_KEPT = 50
_WRITES = os.O_WRONLY | os.O_RDWR


def start_log() -> None:
    """Show on standard error what this process does, and write it to a file in the cache."""
    if LOG in os.environ:
        return
    folder = cache_folder("log")
    if folder is None:
        sys.addaudithook(_hook(say))
        return
    for old in sorted(folder.iterdir())[:-_KEPT]:
        old.unlink(missing_ok=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    os.environ[LOG] = str(path)
    add = _writer(str(path))

    def show(line: str) -> None:
        add(line)
        say(line)

    say(f"log      {path}")
    add(shlex.join(sys.argv))
    for line in about_lines():
        add(line)
    sys.addaudithook(_hook(show, add))


def join_log() -> None:
    """Add lines to the file of the command that started this process, if it has one."""
    path = os.environ.get(LOG)
    if path:
        add = _writer(path)
        sys.addaudithook(_hook(add, add))


def _writer(path: str) -> Callable[[str], None]:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(line: str) -> None:
        text = f"{time.strftime('%H:%M:%S')} {os.getpid()} {without_secrets(line)}\n"
        os.write(handle, text.encode(errors="backslashreplace"))

    return add


def _hook(
    show: Callable[[str], None], add: Callable[[str], None] | None = None
) -> Callable[[str, tuple[object, ...]], None]:
    """Return a hook that shows a line for each event, and only adds what was shown already."""
    ignored = (*own_paths(), "/proc/", "/sys/", "/dev/", os.environ.get(LOG, "/dev/"))
    seen: set[str] = set()
    busy = False

    def hook(event: str, values: tuple[object, ...]) -> None:
        nonlocal busy
        if busy or event not in _LINES:
            return
        busy = True  # what is done here opens files, too
        try:
            line = _LINES[event](values)
            if event == SAID:
                if add:
                    add(line)
            elif line and line not in seen and not line[9:].startswith(ignored):
                seen.add(line)
                show(without_secrets(line))
        finally:
            busy = False

    return hook


def _opened(values: tuple[object, ...]) -> str:
    path, _, flags = values
    if not isinstance(flags, int) or isinstance(path, int) or flags & os.O_DIRECTORY:
        return ""
    return f"{'write' if flags & _WRITES else 'read':8} {_text(path)}"


def _program(argv: object) -> str:
    words = argv if isinstance(argv, list | tuple) else [argv]
    return f"run      {shlex.join(map(_text, words))}"


def _text(word: object) -> str:
    return os.fsdecode(word) if isinstance(word, str | bytes | os.PathLike) else str(word)


_LINES: dict[str, Callable[[tuple[object, ...]], str]] = {
    "open": _opened,
    "subprocess.Popen": lambda values: _program(values[1]),
    "os.exec": lambda values: _program(values[1]),
    "socket.getaddrinfo": lambda values: f"connect  {values[0]}:{values[1]}",
    DECIDED: lambda values: f"decide   {values[0]}",
    SAID: lambda values: str(values[0]).rstrip("\n"),
}
"""The line of each event: a word of eight letters, and what it is about."""
