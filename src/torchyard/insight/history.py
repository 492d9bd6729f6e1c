"""Jumps of figures from run to run."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from torchyard.insight.history_rows import HistoryRow
from torchyard.insight.history_table import MetricKind, metric_kinds
from torchyard.insight.regression import common_pace
from torchyard.model.values import Reported

_USUAL = 5
"""Runs whose median a metric is compared with."""


class Jump(Reported, kw_only=True):
    """A figure that changed more than usual; None is for one that was not there.

    `earlier` and `commit` are the ends of the range of commits in which it happened.
    """

    kind: str
    name: str
    fingerprint: str
    release: str
    started: str
    earlier: str
    commit: str
    before: float | None
    now: float | None


class FigureChange(NamedTuple):
    """A figure of two builds; None is for one that a build does not have."""

    kind: str
    name: str
    before: float | None
    now: float | None


def kind_and_name(metric: str) -> tuple[str, str]:
    """Return `library` and its name, or only a kind."""
    kind, _, name = metric.partition("/")
    return kind, name


def find_jumps(rows: Sequence[HistoryRow]) -> list[Jump]:
    """Return the jumps in the rows of one series, in their order."""
    usual: dict[str, list[float]] = {}
    found: list[Jump] = []
    for number, row in enumerate(rows):
        before = rows[number - 1] if number else None
        jumps = list(_jumps(row, before, usual)) if before else []
        found += jumps
        for one in jumps:
            usual.pop(f"{one.kind}/{one.name}".rstrip("/"), None)
        for metric, value in row.metrics.items():
            usual.setdefault(metric, []).append(value)
    return found


def _jumps(row: HistoryRow, last: HistoryRow, usual: Mapping[str, list[float]]) -> Iterator[Jump]:
    expected = {name: median(values[-_USUAL:]) for name, values in usual.items()}
    paces = {
        kind: common_pace(_of_kind(row.metrics, kind), _of_kind(expected, kind))
        for kind, rule in metric_kinds().items()
        if rule.relative
    }
    for metric in dict.fromkeys((*last.metrics, *row.metrics)):
        kind, name = kind_and_name(metric)
        rule = metric_kinds().get(kind)
        if rule is None:
            continue
        now = row.metrics.get(metric)
        before = expected.get(metric) if metric in last.metrics else None
        if before is not None:
            before *= paces.get(kind, 1.0)
        if _is_jump(before, now, rule, has_kind=_has_kind(last, kind) and _has_kind(row, kind)):
            yield Jump(
                kind=kind,
                name=name,
                fingerprint=row.fingerprint,
                release=row.release,
                started=row.started,
                earlier=last.commit,
                commit=row.commit,
                before=None if before is None else round(before, 3),
                now=now,
            )


def _of_kind(metrics: Mapping[str, float], kind: str) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if kind_and_name(name)[0] == kind}


def _has_kind(row: HistoryRow, kind: str) -> bool:
    return any(kind_and_name(name)[0] == kind for name in row.metrics)


def _is_jump(before: float | None, now: float | None, rule: MetricKind, *, has_kind: bool) -> bool:
    if before is None or now is None:
        return rule.appears and has_kind and max(before or 0, now or 0) >= rule.least
    small, large = sorted((before, now))
    return large - small >= rule.least and large >= rule.ratio * small


def compare_rows(before: HistoryRow, now: HistoryRow) -> list[FigureChange]:
    """Return the figures that two builds have, of each kind by name; units are left out."""
    found = [
        FigureChange(*kind_and_name(metric), before.metrics.get(metric), now.metrics.get(metric))
        for metric in dict.fromkeys((*before.metrics, *now.metrics))
    ]
    order = list(metric_kinds())
    known = [one for one in found if one.kind in order and not metric_kinds()[one.kind].relative]
    return sorted(known, key=lambda one: (order.index(one.kind), one.name))
