"""Where the time of a build went: of a job in the store, or in a build directory."""

from collections.abc import Sequence

from torchyard.features.timings.report import SlotsTime, TimingsReport
from torchyard.insight.build_record import BuildRecord, read_build
from torchyard.insight.regression import find_slower
from torchyard.workspace.build_files import named_build, open_build

SLOTS = (1, 2, 4, 16, 64)
"""The numbers of compile slots to simulate."""


def measure_build(
    what: str | None,
    *,
    against: str = "",
    ratio: float = 1.5,
    slots: Sequence[int] = SLOTS,
    file: str = "torchyard.toml",
    store: str | None = None,
) -> TimingsReport:
    """Read when the commands of a finished build ran.

    Args:
        what: A build directory, or a job; by default, the last one that runs or failed.
        against: An earlier build to compare with, named in the same way.
        ratio: The ratio of times from which something counts as slower.
        slots: The numbers of compile slots to simulate.
        file: The configuration that names the store.
        store: The store, if it is not the file's.
    """
    what = named_build(what, file)
    record = _record(what, file, store)
    return TimingsReport(
        what=what,
        seconds=record.seconds,
        work=record.work,
        runs=record.run_seconds(),
        slots=[SlotsTime(count, round(record.with_slots(count), 3)) for count in slots],
        targets=record.targets(),
        critical_path=record.critical_path(),
        units=record.units,
        slower=find_slower(record, _record(against, file, store), ratio) if against else [],
    )


def _record(what: str, file: str, store: str | None) -> BuildRecord:
    with open_build(what, file, store) as files:
        return read_build(files.folder)
