"""Follow a job that runs detached, as if it ran in this process."""

import sys
from collections.abc import Callable

from torchyard.errors import TorchyardError
from torchyard.model.event import AnyEvent
from torchyard.model.job_spec import JobSpec
from torchyard.run.conditions import Conditions
from torchyard.run.detached import forget_detached, is_detached, run_detached
from torchyard.run.workdir import WorkDir
from torchyard.store.store import Store
from torchyard.workspace.run import execute_job

SUPERVISOR = (sys.executable, "-m", "torchyard.app.supervise")
"""The command of a supervisor, the process that runs a detached job."""


def follow_job(
    order: JobSpec,
    store: Store,
    conditions: Conditions,
    *,
    on_event: Callable[[AnyEvent], None],
    on_stray: Callable[[bytes], None],
    on_leave: Callable[[str], None],
) -> None:
    """Start a job or follow the one that runs, pass its events on, and end as it does.

    `on_stray` gets lines of the supervisor that are no events, `on_leave` a note if this process
    is interrupted while the job continues.
    """
    place, job = WorkDir(conditions.work, order), order.task.id
    if not is_detached(place) and store.has(order.task.fingerprint):
        forget_detached(place)
        execute_job(order, store, conditions, on_event)
        return
    try:
        over = run_detached(
            order, store, conditions, supervisor=SUPERVISOR, on_event=on_event, on_stray=on_stray
        )
    except (KeyboardInterrupt, SystemExit):
        on_leave(f"{job} goes on; the same command follows it again, `torchyard cancel` ends it")
        raise
    if over.code:
        error = TorchyardError.of(over.faults)
        error.exit_code = over.code
        raise error
