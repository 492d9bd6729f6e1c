"""The process of a detached job: a program of its own, which `torchyard run --detach` starts."""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.host.detached import part

if TYPE_CHECKING:
    from torchyard.errors import TorchyardError
    from torchyard.model.job_spec import Task
    from torchyard.run.detached import Assignment, Over


def main() -> None:
    """Run the job that standard input tells of, and write to standard output what happens."""
    record, lock = Path(sys.argv[1]), int(sys.argv[2])
    part(lock)
    from torchyard.cli.commands.run import print_event
    from torchyard.errors import StoppedError
    from torchyard.host.process_id import birth_of
    from torchyard.host.secrets import give
    from torchyard.host.signals import end_tidily
    from torchyard.run.detached import Assignment, Begun

    assignment = Assignment.decode(sys.stdin.buffer.read())
    if assignment is None:
        return  # whoever wanted it was killed
    give(assignment.secrets)
    end_tidily()
    os.chdir("/")  # who started it may remove the directory that it was in
    pid = os.getpid()
    fingerprint = assignment.order.task.fingerprint
    print_event(Begun(pid=pid, born=birth_of(pid), fingerprint=fingerprint))
    try:
        over = _carry_out(assignment)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except SystemExit:
        over = _stopped(assignment.order.task)
    if over.code in (0, StoppedError.exit_code):
        record.unlink(missing_ok=True)  # the store has the result, or somebody did not want it
    print_event(over)


def _carry_out(assignment: "Assignment") -> "Over":
    """Run the job, and tell how it ended, whatever happened; SystemExit if it has to end now."""
    from torchyard.app.redact import redacting
    from torchyard.cli.commands.run import carry_out, print_event
    from torchyard.cli.main import refusal
    from torchyard.errors import TorchyardError
    from torchyard.run.detached import Over
    from torchyard.store.store import Store

    listen, task = redacting(print_event), assignment.order.task
    try:
        carry_out(assignment.order, Store.at(assignment.store), assignment.conditions, listen)
    except TorchyardError as error:
        return _over(error)
    except OSError as error:
        return _over(refusal(error))
    except Exception as error:  # noqa: BLE001 - whoever follows must hear of it
        sys.excepthook(type(error), error, error.__traceback__)
        return _over(TorchyardError(f"{task.id}: an error in torchyard: {error!r}"))
    return Over(code=0)


def _stopped(task: "Task") -> "Over":
    """Tell that somebody wanted the job to end."""
    from torchyard.app.redact import redacting
    from torchyard.cli.commands.run import print_event
    from torchyard.errors import StoppedError
    from torchyard.model.event import Ended

    stopped = StoppedError(f"{task.id} was stopped", hint="the next run goes on from there")
    redacting(print_event)(
        Ended(
            job=task.id,
            fingerprint=task.fingerprint,
            outcome="failed",
            code=stopped.exit_code,
            why="it was stopped",
        )
    )
    return _over(stopped)


def _over(error: "TorchyardError") -> "Over":
    from torchyard.cli.main import faults_of
    from torchyard.run.detached import Over

    return Over(code=error.exit_code, faults=faults_of(error))


if __name__ == "__main__":
    main()
