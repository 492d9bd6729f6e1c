"""`-v`: show commands that are run, files that are used, and decisions.

Audit hooks see every program, file and connection that Python opens (PEP 578), and decisions of
lower rooms in the same way (`host/decisions.py`).
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
from torchyard.terminal.console import MESSAGE, say
from torchyard.workspace.about import about_lines

LOG = "TORCHYARD_LOG"
"""The variable that names the log file to the processes of a build."""

_KEPT = 50
_WRITES = os.O_WRONLY | os.O_RDWR


def start_log() -> None:
    """Show what this process does on standard error, and log it to a file in the cache."""
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
    """Append to the log of the command that started this process, if it has one."""
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
    """Return a hook that shows each line once, and logs every event."""
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
            if event == MESSAGE:
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
    MESSAGE: lambda values: str(values[0]).rstrip("\n"),
}
"""The line of each event: a verb padded to eight letters, and its object."""
