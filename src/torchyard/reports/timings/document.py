"""What `torchyard timings` prints with `--json`."""

from collections.abc import Sequence
from typing import Literal

from torchyard.insight.build_record import BuildRecord, Unit
from torchyard.insight.regression import Slower
from torchyard.reports.document import JsonDocument


class UnitDocument(JsonDocument, kw_only=True):
    """A command: its first output, its target, when it ran, in seconds, and its peak in bytes.

    `run` counts the runs of ninja, of which an interrupted build has several; each has its own
    clock. The peak is null if it was not measured: of other builds than torchyard's, and of
    commands that took less than half a second.
    """

    name: str
    target: str
    run: int
    begin: float
    end: float
    memory: int | None


class TargetDocument(JsonDocument, kw_only=True):
    """A target: how many units it compiled, and the seconds of all its commands together."""

    name: str
    units: int
    seconds: float


class SlotsDocument(JsonDocument, kw_only=True):
    """How long the same commands would take with a number of compile slots."""

    slots: int
    seconds: float


class SlowerDocument(JsonDocument, kw_only=True):
    """A target or a unit that took longer than in the earlier build."""

    kind: Literal["target", "unit"]
    name: str
    before: float
    seconds: float


class TimingsDocument(JsonDocument, kw_only=True):
    """`torchyard timings --json`: where the time of a build went.

    `seconds` is the wall-clock time of all runs of ninja, `work` that of all commands together.
    """

    version: Literal[1] = 1
    what: str
    seconds: float
    work: float
    runs: list[float]
    slots: list[SlotsDocument]
    targets: list[TargetDocument]
    critical_path: list[UnitDocument]
    units: list[UnitDocument]
    slower: list[SlowerDocument]


def timings_document(
    what: str, record: BuildRecord, slots: Sequence[int], slower: Sequence[Slower] = ()
) -> TimingsDocument:
    """Describe a build; `slower` is what took longer than in an earlier one."""
    return TimingsDocument(
        what=what,
        seconds=_rounded(record.seconds),
        work=_rounded(record.work),
        runs=[_rounded(seconds) for seconds in record.run_seconds()],
        slots=[
            SlotsDocument(slots=count, seconds=_rounded(record.with_slots(count)))
            for count in slots
        ],
        targets=[
            TargetDocument(name=one.name, units=one.units, seconds=_rounded(one.seconds))
            for one in record.targets()
        ],
        critical_path=[_unit(one) for one in record.critical_path()],
        units=[_unit(one) for one in record.units],
        slower=[
            SlowerDocument(
                kind=one.kind,
                name=one.name,
                before=_rounded(one.before),
                seconds=_rounded(one.seconds),
            )
            for one in slower
        ],
    )


def heaviest(document: TimingsDocument, most: int) -> list[tuple[UnitDocument, int]]:
    """Return the commands that took most memory, with their bytes."""
    measured = [(unit, unit.memory) for unit in document.units if unit.memory is not None]
    return sorted(measured, key=lambda pair: -pair[1])[:most]


def _unit(one: Unit) -> UnitDocument:
    return UnitDocument(
        name=one.name,
        target=one.target,
        run=one.run,
        begin=_rounded(one.begin),
        end=_rounded(one.end),
        memory=one.memory,
    )


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
