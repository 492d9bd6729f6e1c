"""The process of a detached job: a program started by `torchyard run --detach`."""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.host.detached import detach

if TYPE_CHECKING:
    from torchyard.errors import TorchyardError
    from torchyard.model.job_spec import Task
    from torchyard.run.detached import Assignment, JobExit


def supervise() -> None:
    """Run the job from standard input, and write its events to standard output."""
    record, lock = Path(sys.argv[1]), int(sys.argv[2])
    detach(lock)
    from torchyard.errors import StoppedError
    from torchyard.host.process_id import process_birth
    from torchyard.host.secrets import give
    from torchyard.host.signals import exit_on_sigterm
    from torchyard.run.detached import Assignment, SupervisorStarted
    from torchyard.terminal.events import emit_event

    assignment = Assignment.decode(sys.stdin.buffer.read())
    if assignment is None:
        return  # the process that started this one was killed
    give(assignment.secrets)
    exit_on_sigterm()
    os.chdir("/")  # the initial directory may be removed
    pid = os.getpid()
    fingerprint = assignment.spec.task.fingerprint
    emit_event(SupervisorStarted(pid=pid, born=process_birth(pid), fingerprint=fingerprint))
    try:
        over = _execute(assignment)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except SystemExit:
        over = _stopped(assignment.spec.task)
    if over.code in (0, StoppedError.exit_code):
        record.unlink(missing_ok=True)  # the store has the result, or the job was cancelled
    emit_event(over)


def _execute(assignment: "Assignment") -> "JobExit":
    """Run the job, and return its exit in any case; raise SystemExit if it is stopped."""
    from torchyard.errors import TorchyardError
    from torchyard.run.detached import JobExit
    from torchyard.run.job import run_job
    from torchyard.store.store import Store
    from torchyard.terminal.events import emit_event
    from torchyard.workspace.faults import host_error
    from torchyard.workspace.redact import redacting

    on_event, task = redacting(emit_event), assignment.spec.task
    try:
        run_job(assignment.spec, Store.at(assignment.store), assignment.conditions, on_event)
    except TorchyardError as error:
        return _over(error)
    except OSError as error:
        return _over(host_error(error))
    except Exception as error:  # noqa: BLE001 - a follower must learn of it
        sys.excepthook(type(error), error, error.__traceback__)
        return _over(TorchyardError(f"{task.id}: an error in torchyard: {error!r}"))
    return JobExit(code=0)


def _stopped(task: "Task") -> "JobExit":
    """Emit that the job was stopped."""
    from torchyard.errors import StoppedError
    from torchyard.model.event import Ended
    from torchyard.terminal.events import emit_event
    from torchyard.workspace.redact import redacting

    stopped = StoppedError(f"{task.id} was stopped", hint="the next run continues from there")
    redacting(emit_event)(
        Ended(
            job=task.id,
            fingerprint=task.fingerprint,
            outcome="failed",
            code=stopped.exit_code,
            why="it was stopped",
        )
    )
    return _over(stopped)


def _over(error: "TorchyardError") -> "JobExit":
    from torchyard.run.detached import JobExit
    from torchyard.workspace.faults import redacted_diagnostics

    return JobExit(code=error.exit_code, faults=redacted_diagnostics(error))


if __name__ == "__main__":
    supervise()
