"""Where the time of a build went: of a job in the store, or in a build directory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from torchyard.app.locations import open_store
from torchyard.errors import CheckError, SelectionError

if TYPE_CHECKING:
    from torchyard.insight.build_record import BuildRecord
    from torchyard.model.result import Result
    from torchyard.reports.timings.document import TimingsDocument
    from torchyard.store.store import Store

SLOTS = (1, 2, 4, 16, 64)
"""The numbers of compile slots that a build is simulated with."""


def measure_build(
    what: str,
    *,
    against: str = "",
    ratio: float = 1.5,
    slots: Sequence[int] = SLOTS,
    file: str = "torchyard.toml",
    store: str | None = None,
) -> "TimingsDocument":
    """Read when the commands of a finished build ran.

    Args:
        what: A build directory, or a job whose result is in the store.
        against: An earlier build to compare with, named in the same way.
        ratio: How many times as long something has to take to be called slower.
        slots: The numbers of compile slots that the build is simulated with.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    from torchyard.insight.regression import find_slower
    from torchyard.reports.timings.document import timings_document

    record = _record(what, file, store)
    slower = find_slower(record, _record(against, file, store), ratio) if against else ()
    return timings_document(what, record, slots, slower)


def refuse_slower(document: "TimingsDocument") -> None:
    """Raise CheckError if something takes longer than in the earlier build."""
    if document.slower:
        first = document.slower[0]
        more = f", and {len(document.slower) - 1} more" if len(document.slower) > 1 else ""
        times = f"{first.seconds / first.before:.1f} times as long as before"
        msg = f"{first.kind} {first.name} takes {times}{more}"
        raise CheckError(msg, hint="--html FILE shows when it ran")


def _record(what: str, file: str, store: str | None) -> "BuildRecord":
    from torchyard.insight.build_record import read_build

    if Path(what).is_dir():
        return read_build(Path(what))
    with _laid_out(what, open_store(store, file, make=False)) as folder:
        return read_build(folder)


@contextmanager
def _laid_out(what: str, store: "Store") -> Iterator[Path]:
    """Lay out what ninja left in the build directory of a job."""
    from torchyard.insight.build_record import BUILD_FILE, LOG
    from torchyard.model.result import Tree
    from torchyard.store.trees import fetch_tree

    result = _result(what, store)
    logs = [file.path for file in result.tree.files if file.path.endswith(f"/{LOG}")]
    if not logs:
        msg = f"the result of {result.id} has no log of ninja"
        raise SelectionError(msg, hint="cores have one: torchyard timings 'core:*'")
    build = logs[0].removesuffix(LOG)
    wanted = [file for file in result.tree.files if file.path in (build + LOG, build + BUILD_FILE)]
    with TemporaryDirectory(prefix="torchyard-timings-") as scratch:
        fetch_tree(store, Tree(files=tuple(wanted)), Path(scratch))
        yield Path(scratch, build)


def _result(what: str, store: "Store") -> "Result":
    """Return the newest result of the one job that is named."""
    from torchyard.store.select import select_results

    found = sorted(select_results(store, [what]), key=lambda result: result.started)
    if not found:
        msg = f"the store has no result of `{what}`, and there is no such directory"
        raise SelectionError(msg, hint="`torchyard store ls` lists what is there")
    jobs = list(dict.fromkeys(result.id for result in found))
    if len(jobs) > 1:
        msg = f"`{what}` names {len(jobs)} jobs: {', '.join(jobs[:3])}"
        raise SelectionError(msg, hint="name one of them")
    return found[-1]
