"""Compare the times of two builds."""

from collections.abc import Iterator, Mapping
from typing import Literal

from torchyard.insight.build_record import BuildRecord
from torchyard.model.values import Reported

_LEAST_SECONDS = 1.0
"""Shorter times differ by chance."""


class Slower(Reported):
    """A target or a unit that took longer than before."""

    kind: Literal["target", "unit"]
    name: str
    before: float
    seconds: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.before if self.before else float("inf")


def find_slower(record: BuildRecord, before: BuildRecord, ratio: float) -> list[Slower]:
    """Return targets and units that took at least `ratio` times as long as in an earlier build.

    Fewer slots or a busier machine slow everything down, so times are compared after scaling the
    earlier build to the same pace.
    """
    pace = common_pace(*({unit.name: unit.seconds for unit in r.units} for r in (record, before)))
    targets = _slower(
        "target",
        {target.name: target.seconds for target in record.targets()},
        {target.name: target.seconds * pace for target in before.targets()},
        ratio,
    )
    units = _slower(
        "unit",
        {unit.name: unit.seconds for unit in record.units},
        {unit.name: unit.seconds * pace for unit in before.units},
        ratio,
    )
    return sorted((*targets, *units), key=lambda slower: slower.before - slower.seconds)


def common_pace(now: Mapping[str, float], before: Mapping[str, float]) -> float:
    """Return the median ratio of the times in both builds."""
    ratios = sorted(seconds / before[name] for name, seconds in now.items() if before.get(name))
    return ratios[len(ratios) // 2] if ratios else 1.0


def _slower(
    kind: Literal["target", "unit"],
    now: Mapping[str, float],
    before: Mapping[str, float],
    ratio: float,
) -> Iterator[Slower]:
    for name, seconds in now.items():
        earlier = before.get(name)
        if earlier is None or seconds - earlier < _LEAST_SECONDS:
            continue
        if seconds >= ratio * earlier:
            yield Slower(kind, name, earlier, seconds)
