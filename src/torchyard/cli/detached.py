"""Following a job that runs detached, as if it ran here."""

from collections.abc import Callable

from torchyard.cli.commands.run import carry_out
from torchyard.errors import TorchyardError
from torchyard.model.event import AnyEvent, encode_event
from torchyard.model.job_spec import JobSpec
from torchyard.run.detached import forget_detached, is_detached, run_detached
from torchyard.run.job import Conditions
from torchyard.run.workdir import WorkDir
from torchyard.store.store import Store
from torchyard.terminal.console import say, write, write_error


def write_event(event: AnyEvent) -> None:
    """Tell who listens; should nobody do so any more, this command ends, and the job goes on."""
    write(encode_event(event))


def follow_job(
    order: JobSpec, store: Store, conditions: Conditions, listen: Callable[[AnyEvent], None]
) -> None:
    """Start a job or follow the one that runs, print what it tells, and end as it does."""
    place, job = WorkDir(conditions.work, order), order.task.id
    if not is_detached(place) and store.has(order.task.fingerprint):
        forget_detached(place)
        carry_out(order, store, conditions, listen)
        return
    try:
        over = run_detached(order, store, conditions, listen, write_error)
    except (KeyboardInterrupt, SystemExit):
        say(f"{job} goes on; the same command follows it again, `torchyard cancel` ends it")
        raise
    if over.code:
        error = TorchyardError.of(over.faults)
        error.exit_code = over.code
        raise error
