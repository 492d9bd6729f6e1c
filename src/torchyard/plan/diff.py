"""Compare two plans: which packages appear, vanish or are rebuilt, and why."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from torchyard.model.config import Config
from torchyard.model.identifier import Cell
from torchyard.model.recipe import CELL_STAGES, Stage
from torchyard.model.values import Origin, Reported
from torchyard.plan.admission import admit
from torchyard.plan.constraints import Scope
from torchyard.plan.explain import value_origin
from torchyard.plan.graph import Job, Plan
from torchyard.plan.settings import SettingSource


class Cause(Reported):
    """A difference between two configurations, and the line that causes it."""

    what: str
    origin: str


class PackageChange(Reported):
    """A package that differs between two plans: the identifier of its cell, and why."""

    cell: str
    causes: tuple[Cause, ...]


class PlanDiff(Reported, kw_only=True):
    """What happens to all packages when one plan replaces another."""

    version: Literal[1] = 1
    appeared: tuple[PackageChange, ...]
    vanished: tuple[PackageChange, ...]
    rebuilt: tuple[PackageChange, ...]
    retested: tuple[PackageChange, ...]
    unchanged: int


class _Words(NamedTuple):
    """Phrases for a package in only one of the plans."""

    value: str
    inclusion: str
    rule: str
    subset: str


_GONE = _Words("{} lost `{}`", "no longer included", "left out", "no longer selected")
_NEW = _Words("{} gained `{}`", "included", "no longer left out", "newly selected")


def diff_plans(old: Plan, new: Plan) -> PlanDiff:
    """Compare the packages of two plans by their cells.

    A new version rebuilds the same packages; another project name makes other packages.
    """
    renamed = old.config.project.name != new.config.project.name
    before = dict.fromkeys(old.cells())
    after = dict.fromkeys(new.cells())
    common = [] if renamed else [cell for cell in after if cell in before]
    differences = FingerprintDiff(old, new)
    rebuilt, retested = [], []
    for cell in common:
        if differences.changed(Stage.PACKAGE, cell):
            rebuilt.append(cell)
        elif any(differences.changed(stage, cell) for stage in CELL_STAGES):
            retested.append(cell)
    kept = set(common)
    return PlanDiff(
        appeared=tuple(
            PackageChange(f"{new.label}/{cell.path}", (_why_only_in(new, old, cell, _NEW),))
            for cell in after
            if cell not in kept
        ),
        vanished=tuple(
            PackageChange(f"{old.label}/{cell.path}", (_why_only_in(old, new, cell, _GONE),))
            for cell in before
            if cell not in kept
        ),
        rebuilt=differences.changes(rebuilt),
        retested=differences.changes(retested),
        unchanged=len(common) - len(rebuilt) - len(retested),
    )


def _why_only_in(having: Plan, lacking: Plan, cell: Cell, words: _Words) -> Cause:
    """Return the line that explains why only one of two plans has a cell."""
    names = having.config.project.name, lacking.config.project.name
    if names[0] != names[1]:
        return Cause(f"the name is `{names[0]}`", str(having.config.origin("project.name")))
    inclusion = next((rule for rule in having.config.matrix.include if rule.matches(cell)), None)
    for field, dimension in enumerate(having.config.project.recipe.dimensions):
        origin = value_origin(having.config, field, cell[field])
        listed = origin and not (inclusion and field in inclusion.named)
        if listed and value_origin(lacking.config, field, cell[field]) is None:
            return Cause(words.value.format(f"matrix.{dimension}", cell[field]), str(origin))
    if inclusion and not any(rule.matches(cell) for rule in lacking.config.matrix.include):
        return Cause(f"{words.inclusion}: {inclusion.reason}", str(inclusion.origin))
    row = _row_only_in(having.config, lacking.config, cell)
    if row:
        return Cause(words.value.format("a couple", row[0]), str(row[1]))
    absence = admit(cell, lacking.config).absence
    if absence:
        return Cause(f"{words.rule}: {absence.reason}", str(absence.origin))
    new = having if words is _NEW else lacking
    return Cause(f"{words.subset}: {new.subset}", str(new.config.origin(f"subset.{new.subset}")))


def _row_only_in(having: Config, lacking: Config, cell: Cell) -> tuple[str, Origin] | None:
    """Return the row of a couple that admits a cell in only one of the configs, or None."""
    if all(couple.admits(cell) for couple in lacking.matrix.couples):
        return None
    for index, couple in enumerate(having.matrix.couples):
        for row, values in enumerate(couple.rows):
            if all(cell[f] == value for f, value in zip(couple.fields, values, strict=True)):
                dimension = having.project.recipe.dimensions[couple.fields[-1]]
                origin = having.origin(f"matrix.couple[{index}].{dimension}[{row}]")
                return " with ".join(values), origin
    return None


class FingerprintDiff:
    """Why fingerprints differ: a job's own settings, or an input's."""

    def __init__(self, old: Plan, new: Plan) -> None:
        self.old = old
        self.new = new
        self._answers: dict[tuple[Stage, Scope], tuple[Cause, ...]] = {}

    def changed(self, stage: Stage, scope: Scope) -> bool:
        return self.old.fingerprint(stage, scope) != self.new.fingerprint(stage, scope)

    def changes(self, cells: Iterable[Cell]) -> tuple[PackageChange, ...]:
        return tuple(
            PackageChange(f"{self.new.label}/{cell.path}", self.cell_causes(cell)) for cell in cells
        )

    def cell_causes(self, cell: Cell) -> tuple[Cause, ...]:
        """Return why a package is rebuilt or tested again."""
        found = (cause for stage in CELL_STAGES for cause in self.causes(stage, tuple(cell)))
        return tuple(dict.fromkeys(found))

    def causes(self, stage: Stage, scope: Scope) -> tuple[Cause, ...]:
        """Return all root causes, those of the earliest stage first; empty if nothing changed."""
        key = (stage, scope)
        if key not in self._answers:
            self._answers[key] = tuple(dict.fromkeys(self._search(stage, scope)))
        return self._answers[key]

    def _search(self, stage: Stage, scope: Scope) -> Iterator[Cause]:
        if not self.changed(stage, scope):
            return
        old, new = self.old.get(stage, scope), self.new.get(stage, scope)
        if old is None or new is None:
            yield self._only_one_has(stage, scope)
            return
        if stage is Stage.PUBLISH:
            moved = self._other_subset(scope[0])
            if moved:
                yield moved
                return
        before = {self.old.jobs[number].key for number in old.inputs}
        after = {self.new.jobs[number].key for number in new.inputs}
        for needed in sorted(before | after):
            yield from self.causes(*needed)
        yield from self._job_causes(old, new)

    def _only_one_has(self, stage: Stage, scope: Scope) -> Cause:
        """Return why only one plan has a job: the cause of the first cell that it serves."""
        having, lacking, words = self.new, self.old, _NEW
        if having.get(stage, scope) is None:
            having, lacking, words = self.old, self.new, _GONE
        if stage is Stage.PUBLISH:
            return self._other_channel(scope[0], having, lacking)
        cells = (cell for cell in having.cells() if cell[: len(scope)] == scope)
        return _why_only_in(having, lacking, next(cells), words)

    def _other_subset(self, name: str) -> Cause | None:
        """Return the cause if a channel's subset changed, or None."""
        old, new = self.old.config.channels[name].subset, self.new.config.channels[name].subset
        what = f"channel.{name} subset: {old or 'everything'} → {new or 'everything'}"
        side = self.new if new else self.old
        return (
            Cause(what, str(side.config.origin(f"channel.{name}.subset"))) if old != new else None
        )

    def _other_channel(self, name: str, having: Plan, lacking: Plan) -> Cause:
        """Return why only one plan publishes to a channel: the other lacks or promotes it."""
        other = lacking.config.channels.get(name)
        if other is not None and other.promote_from:
            origin = lacking.config.origin(f"channel.{name}.promote_from")
            return Cause(f"channel.{name} is promoted from {other.promote_from}", str(origin))
        return Cause(f"channel.{name}", str(having.config.origin(f"channel.{name}")))

    def _job_causes(self, old: Job, new: Job) -> Iterator[Cause]:
        """Yield the differences in a job's own settings."""
        recipes = self.old.config.project.recipe, self.new.config.project.recipe
        if recipes[0].name != recipes[1].name:
            what = f"recipe: {recipes[0].name} → {recipes[1].name}"
            yield Cause(what, str(self.new.config.origin("project.recipe")))
        was, now = old.settings.history, new.settings.history
        for name in dict.fromkeys((*was, *now)):
            before, after = was.get(name, ()), now.get(name, ())
            texts = [sources[-1].text if sources else "unset" for sources in (before, after)]
            if texts[0] != texts[1]:
                what = f"{new.stage} {name}: {texts[0]} → {texts[1]}"
                yield Cause(what, str(_changed_line(before, after)))


def _changed_line(before: Sequence[SettingSource], after: Sequence[SettingSource]) -> Origin:
    """Return the line that sets the new value, or else the line of the removed value."""
    gained = [source for source in after if source.text not in {old.text for old in before}]
    lost = [source for source in before if source.text not in {new.text for new in after}]
    return (gained or lost or [*after, *before])[-1].origin
