"""Programs that outlive whoever started them, and the records by which others follow them.

A record is a file that such a program writes to, and keeps locked for as long as it runs. The lock
is taken by who starts it and handed down, so at every moment there is either no program or a
record that is locked. A new program gets a new file: who follows an older one still reads that.
Only for systems that have `fork` and sessions: not for Windows.
"""

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchyard.host.process import LineReader, hand_over


class Record:
    """What a detached program tells, line by line, and whether it still runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._reader = LineReader(self._handle)

    def is_running(self) -> bool:
        """Whether the program that writes to it is there; many may ask at the same time."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        return False

    def lines(self) -> Iterator[bytes]:
        """The whole lines that were added since the last time."""
        size = 1
        while size:
            lines, size = self._reader.read()
            yield from lines

    def is_empty(self) -> bool:
        return not os.fstat(self._handle).st_size

    def written(self) -> float:
        """When something was told last, by the clock of the disk."""
        return os.fstat(self._handle).st_mtime

    def rewind(self) -> None:
        """Begin again with the first line."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        self._reader.rest = b""

    def forget(self) -> None:
        """Remove the file, unless there is another one in its place."""
        with in_turn(self.path.parent), contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_ino == os.fstat(self._handle).st_ino:
                self.path.unlink()

    def close(self) -> None:
        os.close(self._handle)


@contextlib.contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Let one process after the other look at the records of a directory, and begin new ones."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def find_record(path: Path) -> Record | None:
    """Open a record, if there is one. Ask in turn: one that is just begun is not locked yet."""
    with contextlib.suppress(FileNotFoundError):
        return Record(path)
    return None


def is_written(path: Path) -> bool:
    """Whether there is a record, and a program that writes to it."""
    record = find_record(path)
    if record is None:
        return False
    try:
        return record.is_running()
    finally:
        record.close()


def begin_record(path: Path) -> int:
    """Put a new record in the place of one that nobody writes to, and lock it, in turn."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    handle = os.open(path, flags, 0o666)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def launch(argv: Sequence[str], path: Path, lock: int, told: bytes) -> None:
    """Start a program in a session of its own, and hand the lock of its record down to it.

    It is given the number of the lock as its last argument, calls `part` with it, and does nothing
    unless it can read all that it is told, which nobody else can. What it prints is in the record.
    """
    out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        with subprocess.Popen(
            [*argv, str(lock)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,
            pass_fds=[lock],
        ) as first:
            hand_over(first, told)
    finally:
        os.close(out)
        os.close(lock)


def part(lock: int) -> None:
    """Become nobody's child, and keep the lock from what this program starts itself."""
    os.set_inheritable(lock, False)  # noqa: FBT003 - it takes no names
    if os.fork():
        os._exit(0)
