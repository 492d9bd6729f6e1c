"""Why a job or a file was built again, down to the first cause."""

from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.app.build_files import named_result, open_store_of
from torchyard.errors import SelectionError

if TYPE_CHECKING:
    from torchyard.model.result import Result
    from torchyard.reports.why.document import WhyDocument
    from torchyard.store.store import Store


def explain_rebuild(
    what: str, *, file: str = "torchyard.toml", store: str | None = None
) -> "WhyDocument":
    """Find the first cause for which something was built again.

    Args:
        what: A file in a build directory of ninja, or a job whose result is in the store.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    from torchyard.insight.file_cause import build_folder

    folder = build_folder(Path(what))
    if folder is not None and (Path(what).exists() or "/" in what):
        return _why_file(Path(what), folder)
    if Path(what).exists():
        msg = f"`{what}` is no file that ninja makes"
        raise SelectionError(msg, hint="name an output in a build directory, or a job of the plan")
    opened = open_store_of(what, file, store)
    return _why_job(named_result(what, opened), opened)


def _why_file(path: Path, folder: Path) -> "WhyDocument":
    from torchyard.insight.file_cause import FileCauses
    from torchyard.reports.why.document import why_document

    causes = FileCauses(folder)
    output = causes.output(path)
    pending = causes.pending(output)
    if pending is not None:
        return why_document(output, pending, pending=True)
    return why_document(output, causes.past(output))


def _why_job(result: "Result", store: "Store") -> "WhyDocument":
    from torchyard.insight.job_cause import job_cause
    from torchyard.reports.why.document import why_document

    task = result.order.task
    earlier = [
        other
        for other in store.results(list(store.fingerprints()))
        if (other.order.task.stage, other.order.task.scope) == (task.stage, task.scope)
        and other.started < result.started
    ]
    last = max(earlier, key=lambda other: other.started, default=None)
    return why_document(result.id, job_cause(result.order, last.order if last else None))
