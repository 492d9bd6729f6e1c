"""Programs that outlive their parent, and the records that let other processes follow them.

A record is a file that such a program writes to, and keeps locked while it runs. The
parent takes the lock and passes it on, so there is always either no program or a locked
record. A new program gets a new file; followers of an older one still read the old file.
This needs `fork` and sessions, so it does not work on Windows.
"""

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchyard.host.locks import keep_readers_out, locked
from torchyard.host.process import LineReader, hand_over

LOCK = ".lock"
"""The file in a directory that is locked while its records are searched or created."""


class RunRecord:
    """The output of a detached program, by lines, and whether it still runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._reader = LineReader(self._handle)

    def is_running(self) -> bool:
        """Return whether the writer still runs; several processes may call this at once."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        return False

    def lines(self) -> Iterator[bytes]:
        """Yield the complete lines added since the last call."""
        size = 1
        while size:
            lines, size = self._reader.read()
            yield from lines

    def is_empty(self) -> bool:
        return not os.fstat(self._handle).st_size

    def written(self) -> float:
        """Return the time of the last write."""
        return os.fstat(self._handle).st_mtime

    def rewind(self) -> None:
        """Start again at the first line."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        self._reader.rest = b""

    def forget(self) -> None:
        """Remove the file, unless another record has replaced it."""
        with folder_lock(self.path.parent), contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_ino == os.fstat(self._handle).st_ino:
                self.path.unlink()

    def close(self) -> None:
        os.close(self._handle)


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a directory: only one process at a time searches and creates records.

    The lock is a separate temporary file: any reader of the directory could lock the directory.
    """
    path = folder / LOCK
    with locked(path, wait=True):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def find_record(path: Path) -> RunRecord | None:
    """Open a record, or return None. Hold the folder lock: a new record is not locked at once."""
    with contextlib.suppress(FileNotFoundError):
        return RunRecord(path)
    return None


def has_writer(path: Path) -> bool:
    """Return whether there is a record with a running writer."""
    record = find_record(path)
    if record is None:
        return False
    try:
        return record.is_running()
    finally:
        record.close()


def create_record(path: Path) -> int:
    """Create and lock a record, replacing one without a writer. Hold the folder lock."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    handle = os.open(path, flags, 0o622)
    keep_readers_out(handle)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def launch(argv: Sequence[str], path: Path, lock: int, stdin: bytes) -> None:
    """Start a program in its own session, and pass the lock of its record to it.

    Its last argument is the file descriptor of the lock, for `detach`. It must do nothing unless it
    can read all of `stdin`. Its output goes to the record.
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
            hand_over(first, stdin)
    finally:
        os.close(out)
        os.close(lock)


def detach(lock: int) -> None:
    """Fork, so that init adopts this program, and keep the lock from its children."""
    os.set_inheritable(lock, False)  # noqa: FBT003 - has no keyword
    if os.fork():
        os._exit(0)
