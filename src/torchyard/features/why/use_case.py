"""Why a job or a file was rebuilt, down to the first cause."""

from pathlib import Path

import msgspec

from torchyard.errors import SelectionError
from torchyard.features.why.report import WhyReport
from torchyard.insight.file_cause import FileCauses, JobView, build_folder
from torchyard.insight.job_cause import job_cause
from torchyard.model.job_spec import SPEC_FILE, JobSpec
from torchyard.model.step import Step
from torchyard.run.sandbox import INSIDE, Enclosure, enclose
from torchyard.run.workdir import WorkDir
from torchyard.store.store import Store
from torchyard.workspace.build_files import named_result, open_store_of
from torchyard.workspace.left_job import left_job


def explain_rebuild(
    what: str | None = None, *, file: str = "torchyard.toml", store: str | None = None
) -> WhyReport:
    """Find the first cause of a rebuild.

    Args:
        what: A file in a build directory of ninja, or a job; by default, the last job that runs or
            failed.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    folder = build_folder(Path(what)) if what else None
    if what and folder is not None and (Path(what).exists() or "/" in what):
        return _why_file(Path(what), folder)
    if what and Path(what).exists():
        msg = f"`{what}` is not an output of ninja"
        raise SelectionError(msg, hint="name an output in a build directory, or a job of the plan")
    opened = open_store_of(what or ":", file, store)
    if left := left_job(what, file):
        return _why_job(left, opened)
    if what is None:
        msg = f"no job of `{file}` runs or has failed"
        raise SelectionError(msg, hint="name one, as `torchyard store ls` lists them")
    result = named_result(what, opened)
    return _why_job(result.spec, opened, result.started)


def _why_file(path: Path, folder: Path) -> WhyReport:
    causes = FileCauses(folder, _job_view(folder))
    output = causes.output(path)
    pending = causes.pending(output)
    if pending is not None:
        return WhyReport(output, pending.first, pending.way, pending=True)
    past = causes.past(output)
    return WhyReport(output, past.first, past.way)


def _job_view(folder: Path) -> JobView | None:
    """Return the steps' view of a job's directory, if a build directory is in one."""
    above = next((p for p in folder.resolve().parents if (p / SPEC_FILE).is_file()), None)
    if above is None:
        return None
    spec = msgspec.json.decode((above / SPEC_FILE).read_bytes(), type=JobSpec)
    workdir = WorkDir(above.parent, spec, above.name)
    if workdir.state().sandbox == "none":
        return None
    cwd = f"{INSIDE}/{folder.resolve().relative_to(workdir.job)}"

    def view(argv: list[str]) -> list[str]:
        return enclose(Enclosure("view"), Step(run=tuple(argv), cwd=cwd), workdir, None)

    return JobView(workdir.job, INSIDE, view)


def _why_job(spec: JobSpec, store: Store, started: str = "") -> WhyReport:
    """Compare a job with its previous result, preferably of the same version."""
    task = spec.task
    earlier = [
        other
        for other in store.results(list(store.fingerprints()))
        if (other.spec.task.stage, other.spec.task.scope) == (task.stage, task.scope)
        and (not started or other.started < started)
    ]
    last = max(earlier, key=lambda other: (other.id == task.id, other.started), default=None)
    cause = job_cause(spec, last.spec if last else None, lambda *both: _changed(store, *both))
    return WhyReport(task.id, cause.first, cause.way, pending=not started)


def _changed(store: Store, now: str, before: str) -> list[str]:
    """Return the files that differ between two results; none if either is missing."""
    results = [store.find(fingerprint) for fingerprint in (now, before)]
    if None in results:
        return []
    new, old = ({(file.path, file.digest) for file in r.tree.files} for r in results if r)
    return sorted({path for path, _ in new ^ old})
