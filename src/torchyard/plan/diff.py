"""Two plans compared: which packages appear, vanish or are rebuilt, and what caused it."""

from collections.abc import Iterator
from typing import NamedTuple

from torchyard.model.identifier import Cell
from torchyard.model.recipe import Stage
from torchyard.plan.expand import verdict
from torchyard.plan.explain import flat_settings, value_origin
from torchyard.plan.graph import Job, Plan


class Cause(NamedTuple):
    """A difference between two configurations, and the line that makes it."""

    what: str
    origin: str


class Change(NamedTuple):
    """What happens to one package."""

    identifier: str
    cell: Cell
    causes: tuple[Cause, ...]


class PlanDiff(NamedTuple):
    """What becomes of all packages when one plan follows another."""

    appeared: tuple[Change, ...]
    vanished: tuple[Change, ...]
    rebuilt: tuple[Change, ...]
    unchanged: int


class _Words(NamedTuple):
    """How to tell of a package that only one of the plans has."""

    value: str
    inclusion: str
    rule: str
    subset: str


_GONE = _Words("{} lost `{}`", "no longer included", "left out", "no longer selected")
_NEW = _Words("{} gained `{}`", "included", "no longer left out", "newly selected")


def diff_plans(old: Plan, new: Plan) -> PlanDiff:
    """Compare the packages of two plans by their place in the matrix."""
    before = {cell.path: cell for cell in old.cells()}
    after = {cell.path: cell for cell in new.cells()}
    differences = Differences(old, new)
    rebuilt = tuple(
        Change(f"{new.label}/{path}", cell, causes)
        for path, cell in after.items()
        if path in before and (causes := differences.causes(Stage.PACKAGE, path))
    )
    return PlanDiff(
        appeared=tuple(
            Change(f"{new.label}/{path}", cell, (_why_only_in(new, old, cell, _NEW),))
            for path, cell in after.items()
            if path not in before
        ),
        vanished=tuple(
            Change(f"{old.label}/{path}", cell, (_why_only_in(old, new, cell, _GONE),))
            for path, cell in before.items()
            if path not in after
        ),
        rebuilt=rebuilt,
        unchanged=sum(path in before for path in after) - len(rebuilt),
    )


def _why_only_in(having: Plan, lacking: Plan, cell: Cell, words: _Words) -> Cause:
    """Find the line because of which only one of two plans has a cell."""
    inclusion = next((rule for rule in having.yard.matrix.include if rule.matches(cell)), None)
    if inclusion and not any(rule.matches(cell) for rule in lacking.yard.matrix.include):
        return Cause(f"{words.inclusion}: {inclusion.reason}", str(inclusion.origin))
    dimensions = having.yard.project.recipe.dimensions
    for field, dimension, value in zip(cell._fields, dimensions, cell, strict=True):
        origin = value_origin(having.yard, field, value)
        if origin and value_origin(lacking.yard, field, value) is None:
            return Cause(words.value.format(f"matrix.{dimension}", value), str(origin))
    absence = verdict(cell, lacking.yard, lacking.tables)
    if absence:
        return Cause(f"{words.rule}: {absence.reason}", str(absence.origin))
    plan = lacking if lacking.subset else having
    return Cause(f"{words.subset}: {plan.subset}", str(plan.yard.origin(f"subset.{plan.subset}")))


class Differences:
    """Why a job's fingerprint changed: its own settings, or those of a job it is made from."""

    def __init__(self, old: Plan, new: Plan) -> None:
        self.old = old
        self.new = new
        self._known: dict[tuple[Stage, str], tuple[Cause, ...]] = {}

    def causes(self, stage: Stage, path: str) -> tuple[Cause, ...]:
        """All root causes, nearest to the source first; none if nothing changed."""
        key = (stage, path)
        if key not in self._known:
            old, new = self.old.get(stage, path), self.new.get(stage, path)
            if old is None or new is None:
                plan = "old" if old is None else "new"
                self._known[key] = (Cause(f"only the {plan} plan lacks {stage}:{path}", plan),)
            elif old.fingerprint == new.fingerprint:
                self._known[key] = ()
            else:
                self._known[key] = tuple(dict.fromkeys(self._search(old, new)))
        return self._known[key]

    def _search(self, old: Job, new: Job) -> Iterator[Cause]:
        before = {(job.stage, job.path) for job in map(self.old.job, old.inputs)}
        after = {(job.stage, job.path) for job in map(self.new.job, new.inputs)}
        for stage, path in sorted(before | after):
            yield from self.causes(stage, path)
        labels = self.old.yard.project.recipe.label, self.new.yard.project.recipe.label
        if labels[0] != labels[1]:
            yield Cause(f"recipe: {labels[0]} → {labels[1]}", "torchyard itself")
        was, now = flat_settings(old), flat_settings(new)
        for name in dict.fromkeys((*was, *now)):
            if was.get(name) != now.get(name):
                side = new if name in now else old
                what = f"{new.stage} {name}: {was.get(name, 'unset')} → {now.get(name, 'unset')}"
                yield Cause(what, str(side.settings.origins[name]))
