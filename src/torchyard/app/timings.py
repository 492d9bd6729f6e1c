"""Where the time of a build went: of a job in the store, or in a build directory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchyard.app.build_files import named_build, open_build
from torchyard.errors import CheckError

if TYPE_CHECKING:
    from torchyard.insight.build_record import BuildRecord
    from torchyard.reports.timings.document import TimingsDocument

SLOTS = (1, 2, 4, 16, 64)
"""The numbers of compile slots that a build is simulated with."""


def measure_build(
    what: str | None,
    *,
    against: str = "",
    ratio: float = 1.5,
    slots: Sequence[int] = SLOTS,
    file: str = "torchyard.toml",
    store: str | None = None,
) -> "TimingsDocument":
    """Read when the commands of a finished build ran.

    Args:
        what: A build directory, or a job; by default, the last one that runs or failed.
        against: An earlier build to compare with, named in the same way.
        ratio: How many times as long something has to take to be called slower.
        slots: The numbers of compile slots that the build is simulated with.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    from torchyard.insight.regression import find_slower
    from torchyard.reports.timings.document import timings_document

    what = named_build(what, file)
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

    with open_build(what, file, store) as files:
        return read_build(files.folder)
