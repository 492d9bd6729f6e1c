"""The figures of jobs from run to run, and of two builds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchyard.app.locations import open_store
from torchyard.errors import SelectionError

if TYPE_CHECKING:
    from torchyard.insight.history_rows import HistoryRow
    from torchyard.reports.history.document import HistoryDocument


def follow_history(
    selectors: Sequence[str] = (),
    *,
    between: tuple[str, str] | None = None,
    file: str = "torchyard.toml",
    store: str | None = None,
) -> "HistoryDocument":
    """Return the figures of every run of some jobs, and where they jumped.

    Args:
        selectors: Words of a selector, such as `check:*`; all jobs if there are none.
        between: Two runs to compare, by the first digits of their fingerprints, or by release.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    from torchyard.insight.history_rows import history_rows
    from torchyard.reports.history.document import history_document

    opened = open_store(store, file, make=False)
    rows = history_rows(opened, selectors)
    if not rows:
        msg = f"the store `{opened.url}` has no run of any job"
        raise SelectionError(msg, hint="`torchyard store ls` lists what is there")
    pair = (_run(between[0], rows), _run(between[1], rows)) if between else None
    return history_document(opened.url, rows, pair)


def _run(name: str, rows: Sequence["HistoryRow"]) -> "HistoryRow":
    """Return the newest run that a name means; several jobs of a release are ambiguous."""
    found = [row for row in rows if row.fingerprint.startswith(name) or row.release == name]
    jobs = list(dict.fromkeys(row.job for row in found))
    if not found:
        releases = ", ".join(dict.fromkeys(row.release for row in rows))
        msg = f"there is no run `{name}`"
        raise SelectionError(msg, hint=f"there are {releases}, and fingerprints")
    if len(jobs) > 1:
        msg = f"`{name}` means {len(jobs)} jobs: {', '.join(jobs[:3])}"
        raise SelectionError(
            msg, hint="name one job, too: torchyard history 'check:*/cp312/wheel' …"
        )
    return found[-1]
