"""Runs operations in processes that are killed at a chosen moment; a program, run by tests.

It has imported everything and used nothing of it, so an operation (a deed) costs a fork instead of
a start. It reads one deed on each line and answers with its outcome. It adopts the processes that
killed deeds leave running, so that all of them are found.
"""

import contextlib
import ctypes
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import msgspec
import obstore
import psutil
from tests.support.channel_deeds import DEEDS

from torchyard.features.run.use_case import SUPERVISOR
from torchyard.host.snapshot import check_out, copy_folder
from torchyard.host.tree import read_source_tree
from torchyard.model.job_spec import JobSpec
from torchyard.run.conditions import Conditions
from torchyard.run.detached import run_detached
from torchyard.run.job import run_job
from torchyard.store import gc_lease
from torchyard.store.directory import DurableDirectory
from torchyard.store.gc import remove_garbage
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import FileContent

P = ParamSpec("P")
T = TypeVar("T")

Moment = Literal["before", "after", "file", "large", "process"]
"""Of an operation on a store, its begin or its end; of files, of a large upload, of a process."""

STORE = ("put", "get", "head", "list", "delete", "copy")
FILES = {"open", "fcntl.flock", "subprocess.Popen"}.union(
    f"os.{name}"
    for name in (
        *("mkdir", "rename", "link", "remove", "rmdir", "symlink"),
        *("chmod", "utime", "truncate"),
    )
)
LARGE = 8 << 20
_SUBREAPER = 36
_LINGER = 30.0


class Kill(msgspec.Struct, frozen=True):
    """When to kill it: this many seconds after the n-th occurrence of a moment, and a file."""

    moment: Moment
    number: int
    delay: float = 0
    until: str = ""
    """A file that must be there, if one is named."""
    stop: bool = False
    """Whether it is only stopped, until it receives SIGCONT."""


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """An operation on stores and in a directory, and when to kill it."""

    what: Literal["run", "detach", "collect", "copy", "snapshot", "check out", "channel"]
    folder: str
    store: str = ""
    target: str = ""
    spec: JobSpec | None = None
    file: str = ""
    copies: int = 0
    keep: frozenset[str] = frozenset()
    kill: Kill | None = None


def channel_deed(what: str, folder: Path, url: str, other: str = "") -> Deed:
    """One of the operations on channels."""
    return Deed(what="channel", folder=str(folder), store=url, file=what, target=other)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a deed: exit code or signal, its moments, and what is still running.

    `starts` says how many operations on files came before each process was started, `upload` how
    many seconds a large upload took.
    """

    code: int = 0
    moments: dict[Moment, int] = {}
    starts: list[int] = []
    upload: float = 0
    running: bool = False
    said: str = ""


class Moments:
    """Counts the moments of a deed, and kills it at the chosen one."""

    def __init__(self, folder: str, kill: Kill | None) -> None:
        self.seen: Counter[Moment] = Counter()
        self.starts: list[int] = []
        self.upload = 0.0
        self._folder = folder
        self._kill = kill
        self._lock = threading.Lock()

    def come(self, moment: Moment) -> None:
        with self._lock:
            self.seen[moment] += 1
            number = self.seen[moment]
        kill = self._kill
        if kill is None or (moment, number) != (kill.moment, kill.number):
            return
        if kill.stop:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif kill.delay or kill.until:
            late = (kill.delay, kill.until)
            threading.Thread(target=_die, args=late, daemon=True).start()
        else:
            _die()

    def around(self, ask: Callable[P, T]) -> Callable[P, T]:
        """Count the start and the end of an operation on a store as moments."""

        def asked(*args: P.args, **kwargs: P.kwargs) -> T:
            self.come("before")
            large = any(_size(arg) > LARGE for arg in args)
            if large:
                self.come("large")
            began = time.monotonic()
            try:
                return ask(*args, **kwargs)
            finally:
                if large:
                    self.upload = time.monotonic() - began
                self.come("after")

        return asked

    def hear(self, event: str, args: tuple[object, ...]) -> None:
        """Count operations on files of the deed as moments."""
        if event not in FILES:
            return
        if event == "open":
            flags = args[2]
            if not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
                return
        if event == "subprocess.Popen":
            self.starts.append(self.seen["file"])
            self.come("process")
        elif str(args[0]).startswith("/") and not str(args[0]).startswith(self._folder):
            return  # others are relative to a directory of the deed, or no names but handles
        self.come("file")


def _size(data: object) -> int:
    """Return the size of the file that is written to a store, or 0 for other values."""
    if isinstance(data, Path):
        return data.stat().st_size
    return data.size if isinstance(data, FileContent) else 0


def _die(delay: float = 0, until: str = "") -> None:
    time.sleep(delay)
    while until and not Path(until).exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def conditions_of(deed: Deed, spec: JobSpec) -> Conditions:
    work = Path(deed.folder, "work")
    return Conditions(work=work, file=deed.file, sandbox=spec.sandbox, copies=deed.copies)


def do(deed: Deed) -> None:
    folder = Path(deed.folder)
    match deed.what:
        case "run":
            assert deed.spec is not None
            conditions = conditions_of(deed, deed.spec)
            run_job(deed.spec, Store.at(deed.store), conditions, lambda _: None)
        case "detach":
            assert deed.spec is not None
            conditions = conditions_of(deed, deed.spec)
            store = Store.at(deed.store)
            over = run_detached(
                deed.spec,
                store,
                conditions,
                supervisor=SUPERVISOR,
                on_event=lambda _: None,
                on_stray=lambda _: None,
            )
            assert over.code == 0, over
        case "collect":
            remove_garbage(Store.at(deed.store), deed.keep, timedelta(minutes=-1))
        case "copy":
            source = Store.at(deed.store)
            copy(source, Store.at(deed.target), source.results())
        case "snapshot":
            copy_folder(Path(deed.file), read_source_tree(deed.file).digest, folder / "out", ())
        case "check out":
            url, _, commit = deed.file.rpartition("@")
            check_out(url, commit, folder / "out", submodules=True)
        case "channel":
            DEEDS[deed.file](deed.store, deed.target)


def begin(deed: Deed) -> int:
    """Start a deed in a process of its own."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        out = os.open(f"{deed.folder}.said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        tempfile.tempdir = f"{deed.folder}/temporary"
        moments = Moments(deed.folder, deed.kill)
        for name in STORE:
            setattr(obstore, name, moments.around(getattr(obstore, name)))
        own = "put"  # the writes to directories are not obstore's
        setattr(DurableDirectory, own, moments.around(DurableDirectory.put))
        sys.addaudithook(moments.hear)
        do(deed)
        ended = Ended(moments=moments.seen, starts=moments.starts, upload=moments.upload)
        Path(f"{deed.folder}.told").write_bytes(msgspec.json.encode(ended))
        code = 0
    except BaseException:  # noqa: BLE001 - this process must not go on as its parent does
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(child: int) -> tuple[int, bool]:
    """Wait for a deed; return its exit code, and whether processes of it remain."""
    status = None
    while status is None:
        pid, found = os.waitpid(-1, 0)
        if pid == child:
            status = found
    code = os.waitstatus_to_exitcode(status)
    until = time.monotonic() + _LINGER
    while (running := anything_runs()) and code == 0 and time.monotonic() < until:
        time.sleep(0.002)
    return code, running


def anything_runs() -> bool:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def main() -> None:
    gc_lease.DEAD, gc_lease.BEAT = 0.1, 0.02  # minutes that writers wait after a sweep was killed
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin.buffer:
        deed = msgspec.json.decode(line, type=Deed)
        code, running = wait(begin(deed))
        ended = Ended(said=Path(f"{deed.folder}.said").read_text(encoding="utf-8"))
        if code == 0:
            told = Path(f"{deed.folder}.told").read_bytes()
            ended = msgspec.json.decode(told, type=Ended)
        ended = msgspec.structs.replace(ended, code=code, running=running)
        sys.stdout.buffer.write(msgspec.json.encode(ended) + b"\n")
        sys.stdout.flush()
    for left in psutil.Process().children(recursive=True):  # by a test that fails for it
        left.kill()


if __name__ == "__main__":
    main()
