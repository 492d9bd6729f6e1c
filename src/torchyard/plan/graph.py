"""The plan itself: jobs as columns, so that a million of them stay small."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import Cell, job_identifier, scope_of, scope_path
from torchyard.model.matrix import Needs
from torchyard.model.recipe import DEPTH, Stage
from torchyard.model.suggest import nearest
from torchyard.plan.expand import Absent, Expansion, bits
from torchyard.plan.select import find_subset, in_subset
from torchyard.plan.settings import Settings
from torchyard.plan.unused_rules import warnings

_COMPARED = 300
"""Up to so many jobs it takes no time to look for the one that was meant."""

Scope = tuple[str, ...]


class Job(NamedTuple):
    """One node of a plan, spelt out."""

    number: int
    stage: Stage
    scope: Scope
    identifier: str
    fingerprint: str
    inputs: tuple[int, ...]
    settings: Settings

    @property
    def path(self) -> str:
        return scope_path(self.scope)


class Columns(NamedTuple):
    """The jobs of a plan, a list for each of their properties."""

    stages: list[Stage]
    scopes: list[Scope]
    fingerprints: list[str]
    inputs: list[tuple[int, ...]]
    settings: list[Settings]


class Plan:
    """An immutable graph of jobs, in an order in which each stands behind its inputs."""

    def __init__(
        self, expansion: Expansion, columns: Columns, *, subset: str | None, partial: bool
    ) -> None:
        self.config: Config = expansion.config
        self.tables = expansion.tables
        self.expansion = expansion
        self.subset = subset
        self.partial = partial
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns.stages)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Things in the file that do nothing."""
        return tuple(warnings(self.expansion))

    @property
    def label(self) -> str:
        return self.config.project.label

    def job(self, number: int) -> Job:
        stages, scopes, fingerprints, inputs, settings = self.columns
        return Job(
            number,
            stages[number],
            scopes[number],
            self.identifier(number),
            fingerprints[number],
            inputs[number],
            settings[number],
        )

    def identifier(self, number: int) -> str:
        stages, scopes, *_ = self.columns
        return job_identifier(stages[number], self.label, scope_path(scopes[number]))

    def jobs(self) -> Iterator[Job]:
        return map(self.job, range(len(self)))

    def cells(self) -> Iterator[Cell]:
        """Every package that should exist, in the order of the file."""
        for stage, scope in zip(self.columns.stages, self.columns.scopes, strict=True):
            if stage is Stage.PACKAGE:
                yield Cell(*scope)

    def absent(self) -> Iterator[Absent]:
        """What rules and tables leave out of this plan; nothing is said of parts of it."""
        if self.partial:
            return
        if self.subset is None:
            yield from self.expansion.absent
            return
        subset = find_subset(self.config, self.subset)
        for absence, head, mask in self.expansion.absent:
            cells = (Cell(*head, *pair) for pair in self.expansion.pairs)
            inside = mask & bits(in_subset(cell, self.config, subset) for cell in cells)
            if inside:
                yield Absent(absence, head, inside)

    def stage_counts(self) -> dict[Stage, int]:
        counts = Counter(self.columns.stages)
        return {stage: counts[stage] for stage in Stage if counts[stage]}

    @cached_property
    def _index(self) -> dict[tuple[Stage, Scope], int]:
        keys = zip(self.columns.stages, self.columns.scopes, strict=True)
        return {key: number for number, key in enumerate(keys)}

    def get(self, stage: Stage, scope: Scope) -> Job | None:
        number = self._index.get((stage, scope))
        return None if number is None else self.job(number)

    def find(self, stage: Stage, path: str) -> Job:
        """The job of a stage at a path, or a complaint."""
        job = self.get(stage, scope_of(stage, path))
        if job is None:
            stages, scopes, *_ = self.columns
            msg = f"the plan has no job `{job_identifier(stage, self.label, path)}`"
            paths = [scope_path(s) for s, kind in zip(scopes, stages, strict=True) if kind is stage]
            near = nearest(path, paths) if len(paths) <= _COMPARED else None
            hint = f"did you mean `{job_identifier(stage, self.label, near)}`?" if near else None
            raise SelectionError(msg, hint=hint or "`torchyard plan --jobs` lists the jobs")
        return job

    def fingerprint(self, stage: Stage, scope: Scope) -> str | None:
        number = self._index.get((stage, scope))
        return None if number is None else self.columns.fingerprints[number]

    def needs(self) -> Iterator[tuple[tuple[int, ...], Needs]]:
        """Inputs and needs of each job, in order."""
        for inputs, settings in zip(self.columns.inputs, self.columns.settings, strict=True):
            yield inputs, settings.needs

    def keep(self, wanted: Iterable[int]) -> "Plan":
        """The part of this plan that makes the wanted jobs."""
        kept = set(wanted)
        for index in range(len(self) - 1, -1, -1):
            if index in kept:
                kept.update(self.columns.inputs[index])
        order = sorted(kept)
        renumbered = {old: new for new, old in enumerate(order)}
        stages, scopes, fingerprints, inputs, settings = self.columns
        columns = Columns(
            [stages[old] for old in order],
            [scopes[old] for old in order],
            [fingerprints[old] for old in order],
            [tuple(renumbered[i] for i in inputs[old]) for old in order],
            [settings[old] for old in order],
        )
        return Plan(self.expansion, columns, subset=self.subset, partial=True)

    @cached_property
    def _made_from(self) -> Counter[Scope]:
        """How many packages lie under each scope: everything, a block, a block's Python."""
        depths = sorted(set(DEPTH.values()))
        return Counter(cell[:depth] for cell in self.cells() for depth in depths)

    def packages_of(self, job: Job) -> int:
        """How many packages are made from a job's result."""
        return self._made_from[() if job.stage is Stage.PUBLISH else job.scope]
