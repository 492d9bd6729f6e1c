"""Where the time of a build went, for people."""

from collections.abc import Iterator

from rich.console import Group, RenderableType

from torchyard.model.quantity import show_duration, show_size
from torchyard.reports.seconds import show_seconds
from torchyard.reports.tables import and_more, folded, indented, number, table
from torchyard.reports.timings.document import TimingsDocument, UnitDocument, heaviest
from torchyard.terminal.untrusted import printable

_LISTED = 10
_RUNS = 3


def timings_report(document: TimingsDocument, most: int = _LISTED) -> RenderableType:
    """Show targets, the slowest commands, the critical path, and other numbers of slots."""
    return Group(*_parts(document, most))


def _parts(document: TimingsDocument, most: int) -> Iterator[RenderableType]:
    took, work = map(show_duration, (document.seconds, document.work))
    yield indented(f"{document.what}: {took}, {work} of commands", 0)
    if len(document.runs) > 1:
        shown = ", ".join(map(show_duration, document.runs[:_RUNS]))
        more = ", …" if len(document.runs) > _RUNS else ""
        yield indented(f"in {len(document.runs)} runs of ninja: {shown}{more}", 0)
    yield ""
    yield _targets(document, most)
    yield from and_more(len(document.targets) - most, 0)
    units = sorted(document.units, key=lambda unit: unit.begin - unit.end)
    yield from _units("slowest commands", units[:most])
    if heavy := heaviest(document, most):
        yield ""
        rows = (
            [show_size(size), show_seconds(_took(one)), printable(one.name)] for one, size in heavy
        )
        yield table([number("memory"), number("time"), folded("most memory")], rows)
    chain = document.critical_path
    length = show_duration(sum(unit.end - unit.begin for unit in chain))
    longest = sorted(chain, key=lambda unit: unit.begin - unit.end)[:most]
    links = [unit for unit in chain if unit in longest]
    yield from _units(f"critical path: {length}", links)
    yield from and_more(len(chain) - len(links), 0)
    yield ""
    rows = ([f"{one.slots:,}", show_duration(one.seconds)] for one in document.slots)
    yield table([number("slots"), number("would take")], rows)
    if document.slower:
        yield ""
        yield _slower(document, most)
        yield from and_more(len(document.slower) - most, 0)


def _targets(document: TimingsDocument, most: int) -> RenderableType:
    rows = (
        [
            printable(one.name),
            f"{one.units:,}",
            show_duration(one.seconds),
            f"{one.seconds / document.work:.0%}" if document.work else "",
        ]
        for one in document.targets[:most]
    )
    return table([folded("target"), number("units"), number("time"), number("share")], rows)


def _units(title: str, units: list[UnitDocument]) -> Iterator[RenderableType]:
    yield ""
    rows = ([show_seconds(_took(unit)), printable(unit.name)] for unit in units)
    yield table([number("time"), folded(title)], rows)


def _took(unit: UnitDocument) -> float:
    return unit.end - unit.begin


def _slower(document: TimingsDocument, most: int) -> RenderableType:
    rows = (
        [
            f"{one.seconds / one.before:.1f}×" if one.before else "",
            show_seconds(one.before),
            show_seconds(one.seconds),
            f"{one.kind} {printable(one.name)}",
        ]
        for one in document.slower[:most]
    )
    columns = [number("slower"), number("before"), number("now"), folded("what")]
    return table(columns, rows)
