"""Why a job or a file was built again, down to the first cause."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from torchyard.app.build_files import named_result, open_store_of
from torchyard.app.left_job import left_job
from torchyard.errors import SelectionError
from torchyard.model.job_spec import ORDER, JobSpec

if TYPE_CHECKING:
    from torchyard.insight.file_cause import JobView
    from torchyard.reports.why.document import WhyDocument
    from torchyard.store.store import Store


def explain_rebuild(
    what: str | None = None, *, file: str = "torchyard.toml", store: str | None = None
) -> "WhyDocument":
    """Find the first cause for which something was built again.

    Args:
        what: A file in a build directory of ninja, or a job; by default, the last job that runs or
            failed.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    from torchyard.insight.file_cause import build_folder

    folder = build_folder(Path(what)) if what else None
    if what and folder is not None and (Path(what).exists() or "/" in what):
        return _why_file(Path(what), folder)
    if what and Path(what).exists():
        msg = f"`{what}` is no file that ninja makes"
        raise SelectionError(msg, hint="name an output in a build directory, or a job of the plan")
    opened = open_store_of(what or ":", file, store)
    if left := left_job(what, file):
        return _why_job(left, opened)
    if what is None:
        msg = f"no job of `{file}` runs or has failed"
        raise SelectionError(msg, hint="name one, as `torchyard store ls` lists them")
    result = named_result(what, opened)
    return _why_job(result.order, opened, result.started)


def _why_file(path: Path, folder: Path) -> "WhyDocument":
    from torchyard.insight.file_cause import FileCauses
    from torchyard.reports.why.document import why_document

    causes = FileCauses(folder, _job_view(folder))
    output = causes.output(path)
    pending = causes.pending(output)
    if pending is not None:
        return why_document(output, pending, pending=True)
    return why_document(output, causes.past(output))


def _job_view(folder: Path) -> "JobView | None":
    """Return how the steps of a job see its directory, if a build directory is in one."""
    from torchyard.insight.file_cause import JobView
    from torchyard.model.step import Step
    from torchyard.run.sandbox import INSIDE, Enclosure, enclose
    from torchyard.run.workdir import WorkDir

    above = next((one for one in folder.resolve().parents if (one / ORDER).is_file()), None)
    if above is None:
        return None
    order = msgspec.json.decode((above / ORDER).read_bytes(), type=JobSpec)
    place = WorkDir(above.parent, order, above.name)
    if place.state().sandbox == "none":
        return None
    cwd = f"{INSIDE}/{folder.resolve().relative_to(place.job)}"

    def view(argv: list[str]) -> list[str]:
        return enclose(Enclosure("view"), Step(run=tuple(argv), cwd=cwd), place, None)

    return JobView(place.job, INSIDE, view)


def _why_job(order: JobSpec, store: "Store", started: str = "") -> "WhyDocument":
    """Compare a job with its last result before; of the same version, if there is one."""
    from torchyard.insight.job_cause import job_cause
    from torchyard.reports.why.document import why_document

    task = order.task
    earlier = [
        other
        for other in store.results(list(store.fingerprints()))
        if (other.order.task.stage, other.order.task.scope) == (task.stage, task.scope)
        and (not started or other.started < started)
    ]
    last = max(earlier, key=lambda other: (other.id == task.id, other.started), default=None)
    cause = job_cause(order, last.order if last else None, lambda *both: _changed(store, *both))
    return why_document(task.id, cause, pending=not started)


def _changed(store: "Store", now: str, before: str) -> list[str]:
    """Return the files in which two results differ; none if one of them is not there."""
    results = [store.find(fingerprint) for fingerprint in (now, before)]
    if None in results:
        return []
    new, old = ({(file.path, file.digest) for file in r.tree.files} for r in results if r)
    return sorted({path for path, _ in new ^ old})
