"""Where the time of a build went."""

from typing import Literal

from torchyard.errors import CheckError
from torchyard.insight.build_record import TargetTime, Unit
from torchyard.insight.regression import Slower
from torchyard.model.quantity import show_duration, show_seconds, show_size
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, and_more, folded, indented, number, table
from torchyard.terminal.untrusted import printable

_LISTED = 10
_RUNS = 3


class SlotsTime(Reported):
    """The simulated time of the commands with a number of compile slots."""

    slots: int
    seconds: float


class TimingsReport(Reported, kw_only=True):
    """`torchyard timings --json`: where the time of a build went.

    `seconds` is the wall-clock time of all runs of ninja, `work` the total time of all commands.
    """

    version: Literal[1] = 1
    what: str
    seconds: float
    work: float
    runs: list[float]
    slots: list[SlotsTime]
    targets: list[TargetTime]
    critical_path: list[Unit]
    units: list[Unit]
    slower: list[Slower]

    def slowest(self, most: int) -> list[Unit]:
        """Return the slowest commands."""
        return sorted(self.units, key=lambda unit: -unit.seconds)[:most]

    def heaviest(self, most: int) -> list[tuple[Unit, int]]:
        """Return the commands with the most memory, and their bytes."""
        measured = [(unit, unit.memory) for unit in self.units if unit.memory is not None]
        return sorted(measured, key=lambda pair: -pair[1])[:most]


def timings_error(report: TimingsReport) -> CheckError | None:
    """Return an error if anything takes longer than in the earlier build, or None."""
    if not report.slower:
        return None
    first = report.slower[0]
    more = f", and {len(report.slower) - 1} more" if len(report.slower) > 1 else ""
    times = f"{first.ratio:.1f} times as long as before"
    msg = f"{first.kind} {first.name} takes {times}{more}"
    return CheckError(msg, hint="--html FILE shows when it ran")


def timings_text(report: TimingsReport, most: int = _LISTED) -> Lines:
    """Show targets, the slowest commands, the critical path, and other numbers of slots."""
    took, work = map(show_duration, (report.seconds, report.work))
    yield indented(f"{report.what}: {took}, {work} of commands", 0)
    if len(report.runs) > 1:
        shown = ", ".join(map(show_duration, report.runs[:_RUNS]))
        more = ", …" if len(report.runs) > _RUNS else ""
        yield indented(f"in {len(report.runs)} runs of ninja: {shown}{more}", 0)
    yield ""
    yield from _targets(report, most)
    yield from and_more(len(report.targets) - most, 0)
    yield from _units("slowest commands", report.slowest(most))
    if heavy := report.heaviest(most):
        yield ""
        rows = (
            [show_size(size), show_seconds(unit.seconds), printable(unit.name)]
            for unit, size in heavy
        )
        yield table([number("memory"), number("time"), folded("most memory")], rows)
    chain = report.critical_path
    length = show_duration(sum(unit.seconds for unit in chain))
    longest = sorted(chain, key=lambda unit: -unit.seconds)[:most]
    links = [unit for unit in chain if unit in longest]
    yield from _units(f"critical path: {length}", links)
    yield from and_more(len(chain) - len(links), 0)
    yield ""
    rows = ([f"{row.slots:,}", show_duration(row.seconds)] for row in report.slots)
    yield table([number("slots"), number("would take")], rows)
    if report.slower:
        yield ""
        yield from _slower(report, most)
        yield from and_more(len(report.slower) - most, 0)


def _targets(report: TimingsReport, most: int) -> Lines:
    rows = (
        [
            printable(target.name),
            f"{target.units:,}",
            show_duration(target.seconds),
            f"{target.seconds / report.work:.0%}" if report.work else "",
        ]
        for target in report.targets[:most]
    )
    yield table([folded("target"), number("units"), number("time"), number("share")], rows)


def _units(title: str, units: list[Unit]) -> Lines:
    yield ""
    rows = ([show_seconds(unit.seconds), printable(unit.name)] for unit in units)
    yield table([number("time"), folded(title)], rows)


def _slower(report: TimingsReport, most: int) -> Lines:
    rows = (
        [
            f"{slow.ratio:.1f}×" if slow.before else "",
            show_seconds(slow.before),
            show_seconds(slow.seconds),
            f"{slow.kind} {printable(slow.name)}",
        ]
        for slow in report.slower[:most]
    )
    columns = [number("slower"), number("before"), number("now"), folded("what")]
    yield table(columns, rows)
