"""Find running builds of a file, and the state of a job."""

from collections.abc import Iterator
from pathlib import Path

from torchyard.errors import SelectionError
from torchyard.host.detached import RunRecord, find_record
from torchyard.model.quantity import show_count, show_duration
from torchyard.recipes import steps_of
from torchyard.run.log import last_line
from torchyard.run.workdir import WorkDir
from torchyard.workspace.left_job import find_left_job
from torchyard.workspace.locations import EVENTS, home_directory, open_store, work_directory


def recent_builds(file: str = "torchyard.toml") -> Iterator[RunRecord]:
    """Yield the records of running builds, or else of the last one."""
    folder = Path(home_directory(file), "builds")
    found = [record for path in folder.glob(f"*/{EVENTS}") if (record := find_record(path))]
    builds = sorted(found, key=RunRecord.written)
    if not builds:
        msg = f"nothing was built yet beside `{file}`"
        raise SelectionError(msg, hint="`torchyard build` builds; -f names another file")
    yield from [build for build in builds if build.is_running()] or builds[-1:]
    for record in builds:
        record.close()


def job_state(job: str, file: str, store_url: str | None = None) -> Iterator[str]:
    """Yield lines on the state of a job, from its directory or its result."""
    spec, config = find_left_job(job, file, None)
    name, steps = spec.task.id, steps_of(spec)
    workdir = WorkDir(Path(work_directory(file)), spec)
    state = workdir.state()
    if result := open_store(store_url, file, config).find(spec.task.fingerprint):
        took = show_duration(result.seconds)
        yield f"{name} is finished: made in {took} at {result.started}, on {result.machine}"
    elif not workdir.log.exists():
        yield f"{name} has not run; `torchyard run {name}` runs it"
    else:
        with workdir.alone(wait=False) as is_idle:
            how = "does not run, and did not finish" if is_idle else "runs"
        done = f"{len(state.steps)} of {show_count(len(steps), 'step')} done"
        yield f"{name} {how}: {done}, {show_duration(state.seconds)} so far"
        yield from (f"step: {step.title}" for step in steps[len(state.steps) :][:1])
        yield f"log: {workdir.log}, which ends:\n  {last_line(workdir.log)}"
        more = f"torchyard diagnose {name}; " if is_idle else ""
        yield f"more: {more}torchyard shell {name}"
