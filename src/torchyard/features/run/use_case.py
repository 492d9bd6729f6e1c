"""Run a job in this process, or in one that outlives it; end such a job."""

import sys
from collections.abc import Callable, Sequence

import msgspec

from torchyard.config.credentials import take_credentials
from torchyard.errors import TorchyardError
from torchyard.host.secrets import give
from torchyard.host.signals import exit_on_sigterm
from torchyard.model.event import Listener
from torchyard.model.job_spec import JobSpec
from torchyard.run.conditions import Conditions
from torchyard.run.detached import end_detached, forget_detached, is_detached, run_detached
from torchyard.run.job import run_job
from torchyard.run.permissions import parse_stages, refuse_other_stages
from torchyard.run.workdir import WorkDir
from torchyard.store.store import Store
from torchyard.workspace.locations import compile_cache_url, copies_limit, open_store
from torchyard.workspace.progress import ignore_line
from torchyard.workspace.redact import redacting
from torchyard.workspace.run import find_job_spec, job_conditions

SUPERVISOR = (sys.executable, "-m", "torchyard.features.run.supervise")
"""The command of a supervisor, the process that runs a detached job."""


def run_one_job(
    job: str | None = None,
    *,
    spec: str | None = None,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
    store_url: str | None = None,
    work: str | None = None,
    sandbox: str | None = None,
    slots: str | None = None,
    cache: str | None = None,
    copies: int | None = None,
    wait: bool = True,
    keep: bool = False,
    detach: bool = False,
    secrets: bool = False,
    stages: str | None = None,
    on_event: Listener,
    on_followed: Listener,
    on_line: Callable[[str], object] = ignore_line,
) -> None:
    """Run a job without a stored result, with secrets removed from the environment.

    `on_event` gets the events of a job in this process, `on_followed` those of a detached one. The
    other arguments are the options of `torchyard run`.
    """
    exit_on_sigterm()
    take_credentials()
    if secrets:
        give(msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, str]))
    planned, config = find_job_spec(job, spec, file, changes)
    if stages is not None:
        refuse_other_stages(planned.task, parse_stages(stages))
    conditions = job_conditions(planned, file, work, sandbox)._replace(
        slots=slots,
        wait=wait,
        keep=keep,
        cache=cache or compile_cache_url(file, config),
        copies=copies_limit(config) if copies is None else copies,
    )
    store = open_store(store_url, file, config)
    if detach:
        _follow(planned, store, conditions, redacting(on_followed), on_line)
    else:
        run_job(planned, store, conditions, redacting(on_event))


def _follow(
    spec: JobSpec,
    store: Store,
    conditions: Conditions,
    on_event: Listener,
    on_line: Callable[[str], object],
) -> None:
    """Start a job or follow it, pass on its events, and exit with its outcome."""
    workdir, job = WorkDir(conditions.work, spec), spec.task.id
    if not is_detached(workdir) and store.has(spec.task.fingerprint):
        forget_detached(workdir)
        run_job(spec, store, conditions, on_event)
        return

    def on_stray(line: bytes) -> None:
        """Pass on the supervisor's other output."""
        on_line(line.decode(errors="replace").rstrip("\n"))

    try:
        over = run_detached(
            spec, store, conditions, supervisor=SUPERVISOR, on_event=on_event, on_stray=on_stray
        )
    except (KeyboardInterrupt, SystemExit):
        on_line(f"{job} continues; the same command follows it, `torchyard run cancel` ends it")
        raise
    if over.code:
        error = TorchyardError.of(over.faults)
        error.exit_code = over.code
        raise error


def cancel_job(
    job: str | None = None,
    *,
    spec: str | None = None,
    file: str = "torchyard.toml",
    changes: Sequence[str] = (),
    work: str | None = None,
    on_line: Callable[[str], object] = ignore_line,
) -> None:
    """End a detached job and all its processes, and return its directory's path."""
    planned, _ = find_job_spec(job, spec, file, changes)
    workdir = WorkDir(job_conditions(planned, file, work, None).work, planned)
    if end_detached(workdir):
        on_line(f"{planned.task.id} was stopped; its directory is {workdir.folder}")
    else:
        on_line(f"{planned.task.id} does not run detached in {workdir.folder.parent}")
