"""Jobs that outlive the command that started them; the same command follows a running job.

A supervisor runs the job and writes a record beside the job's directory: its process, events, and
the job's exit. A leftover record has an exit that no command has read yet, or none because the
supervisor was killed.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from torchyard.errors import BusyError, Diagnostic, ElsewhereError
from torchyard.host.detached import (
    RunRecord,
    create_record,
    find_record,
    folder_lock,
    has_writer,
    launch,
)
from torchyard.host.process_id import is_same_process, process_age
from torchyard.host.process_tree import GRACE, family, kill_all
from torchyard.model.event import AnyEvent, Event, Noted
from torchyard.model.job_spec import JobSpec
from torchyard.model.values import UNDECODABLE, Value
from torchyard.run.conditions import Conditions
from torchyard.run.permissions import secrets_for
from torchyard.run.workdir import RECORD, WorkDir
from torchyard.store.store import Store

_SOON, _SELDOM = 0.02, 0.5
"""Seconds between two reads of a record, after an event and without one."""

_PATIENCE = 2 * GRACE + 5
"""Seconds for a supervisor to end its steps; these get GRACE twice."""

Role = Literal["starts", "joins", "hears"]
"""What a command does: start the job, follow it, or read its exit."""

_NOTES: dict[Role, str] = {
    "joins": "already runs detached on this machine; these are its events from the beginning",
    "hears": "ended without a follower; these are its events, and the next run starts anew",
}


class SupervisorStarted(Event, kw_only=True, tag="begun"):
    """A supervisor has started: its process and its job."""

    pid: int
    born: str
    fingerprint: str

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return process_age(self.born)


class JobExit(Event, kw_only=True, tag="over"):
    """A job has ended: its exit code and its error."""

    code: int
    faults: tuple[Diagnostic, ...] = ()


class Assignment(Value, kw_only=True):
    """The input of a supervisor through a pipe, including secrets."""

    spec: JobSpec
    store: str
    conditions: Conditions
    secrets: dict[str, str]

    def encode(self) -> bytes:
        return msgspec.json.encode(self, enc_hook=str)

    @classmethod
    def decode(cls, data: bytes) -> "Assignment | None":
        """Decode an assignment, or return None if the writer was killed before finishing."""
        with suppress(*UNDECODABLE):
            return msgspec.json.decode(data, type=cls, dec_hook=lambda kind, text: kind(text))
        return None


_LINES = msgspec.json.Decoder(AnyEvent | SupervisorStarted | JobExit)


def is_detached(workdir: WorkDir) -> bool:
    """Return whether a job runs detached on this machine."""
    if not workdir.record.exists():
        return False
    with folder_lock(workdir.record.parent):
        return has_writer(workdir.record)


def run_detached(  # noqa: PLR0913 - the job, how it is run, and who listens
    spec: JobSpec,
    store: Store,
    conditions: Conditions,
    *,
    supervisor: Sequence[str],
    on_event: Callable[[AnyEvent], None],
    on_stray: Callable[[bytes], None],
) -> JobExit:
    """Follow a detached job, or start it; return its exit.

    `supervisor` is the command that runs a job detached: its arguments are the record's path and
    lock, its standard input is an `Assignment`.
    """
    workdir = WorkDir(conditions.work, spec)
    secrets = dict(secrets_for(spec.task.stage, store))
    assignment = Assignment(spec=spec, store=store.url, conditions=conditions, secrets=secrets)
    while True:
        record, role = _join(workdir, supervisor, assignment)
        try:
            if role in _NOTES:
                on_event(Noted(job=spec.task.id, text=_NOTES[role]))
            over = follow_record(record, on_event, on_stray)
            if over is not None:
                record.forget()
                return over
            if role == "starts" or not record.is_empty():
                raise _lost(spec)
        finally:
            record.close()


def _lost(spec: JobSpec) -> ElsewhereError:
    msg = f"{spec.task.id}: the detached process that ran it is gone, and left no exit code"
    hint = "it was killed, or the machine's disk is full; the same command continues the job"
    return ElsewhereError(msg, hint=hint)


def _find(workdir: WorkDir) -> RunRecord | None:
    if not workdir.record.exists():
        return None
    with folder_lock(workdir.record.parent):
        return find_record(workdir.record)


def forget_detached(workdir: WorkDir) -> None:
    """Remove the record of a job that has ended."""
    record = _find(workdir)
    if record is not None:
        if not record.is_running():
            record.forget()
        record.close()


def _join(
    workdir: WorkDir, supervisor: Sequence[str], assignment: Assignment
) -> tuple[RunRecord, Role]:
    """Open the record of a job, and start it if it does not run; only one caller does."""
    path = workdir.record
    with folder_lock(path.parent):
        record = find_record(path)
        if record is not None:
            if record.is_running():
                return record, "joins"
            if any(isinstance(_read(line), JobExit) for line in record.lines()):
                record.rewind()
                return record, "hears"
            record.close()
        lock = create_record(path)
        record = RunRecord(path)
    launch((*supervisor, str(path)), path, lock, assignment.encode())
    return record, "starts"


def _read(line: bytes) -> AnyEvent | SupervisorStarted | JobExit | None:
    """Decode a line; return None for output of a library or of Python itself."""
    with suppress(*UNDECODABLE):
        read: AnyEvent | SupervisorStarted | JobExit = _LINES.decode(line)
        return read
    return None


def follow_record(
    record: RunRecord, on_event: Callable[[AnyEvent], None], on_stray: Callable[[bytes], None]
) -> JobExit | None:
    """Pass on the events of a record up to the job's exit, and return the exit.

    Return None if the supervisor died without one. Stop if this process has lost its parent:
    otherwise it would consume the exit, and no other command could read it.
    """
    parent, nap = os.getppid(), _SOON
    while True:
        is_running = record.is_running()  # checked first, so that the last lines are read
        is_quiet = True
        for line in record.lines():
            is_quiet = False
            match read := _read(line):
                case JobExit():
                    _stay_with(parent)
                    return read
                case SupervisorStarted():
                    pass
                case None:
                    on_stray(line + b"\n")
                case _:
                    on_event(read)
        if not is_running:
            return None
        _stay_with(parent)
        nap = min(1.25 * nap, _SELDOM) if is_quiet else _SOON
        time.sleep(nap)


def _stay_with(parent: int) -> None:
    if os.getppid() != parent:
        msg = "the process that followed the job is gone; the job continues"
        raise ElsewhereError(msg, hint="the same command follows it again")


def end_detached(workdir: WorkDir) -> bool:
    """End a detached job and all its processes; return whether it ran.

    Its directory stays. Processes left by a killed supervisor are ended, too.
    """
    record = _find(workdir)
    was_running = False
    if record is not None:
        was_running = record.is_running()
        _end(record)
        record.close()
    if workdir.folder.exists():
        with workdir.alone(wait=False) as alone:
            if alone:
                workdir.end_leftover()
    return was_running


def detached_in(work: Path) -> dict[str, SupervisorStarted | None]:
    """Return the detached jobs in a work directory by name; a starting job is None."""
    found = {}
    for path in sorted(work.glob(f"*{RECORD}")):
        record = find_record(path)
        if record is not None:
            if record.is_running():
                found[path.stem] = _find_started(record)
            record.close()
    return found


def end_named(work: Path, name: str) -> None:
    """End a detached job by name; the supervisor ends all its processes."""
    record = find_record(work / f"{name}{RECORD}")
    if record is not None:
        try:
            _end(record)
        finally:
            record.close()


def _find_started(record: RunRecord) -> SupervisorStarted | None:
    return next(
        (read for read in map(_read, record.lines()) if isinstance(read, SupervisorStarted)), None
    )


def _end(record: RunRecord) -> None:
    """Send SIGTERM to a supervisor, wait for its end, and kill it if it does not end."""
    begun = None
    for _ in range(2):
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if not record.is_running():
                return
            if begun is None:
                begun = _find_started(record)
                if begun is not None and is_same_process(begun.pid, begun.born):
                    with suppress(ProcessLookupError):  # it just ended
                        os.kill(begun.pid, signal.SIGTERM)
            time.sleep(_SOON)
        if begun is not None and is_same_process(begun.pid, begun.born):
            kill_all(family(begun.pid))
    msg = "the detached process does not end"
    raise BusyError(msg, hint="`ps` may show what it waits for; try again")
