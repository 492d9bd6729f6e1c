"""The plan itself: jobs as columns, so that a million of them stay small."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.identifier import Cell, job_identifier, scope_path
from torchyard.model.recipe import Stage
from torchyard.model.suggest import did_you_mean
from torchyard.model.yard import Yard
from torchyard.plan.expand import Absence, Expansion
from torchyard.plan.settings import Setting, Settings

Scope = tuple[str, ...]
Payload = dict[str, str | list[str] | dict[str, Setting]]


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
        self.yard: Yard = expansion.yard
        self.tables = expansion.tables
        self.expansion = expansion
        self.subset = subset
        self.partial = partial
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns.stages)

    @property
    def warnings(self) -> Sequence[str]:
        return self.expansion.warnings

    @property
    def label(self) -> str:
        return self.yard.project.label

    def job(self, index: int) -> Job:
        stages, scopes, fingerprints, inputs, settings = self._columns
        stage, scope = stages[index], scopes[index]
        identifier = job_identifier(stage, self.label, scope_path(scope))
        return Job(
            index, stage, scope, identifier, fingerprints[index], inputs[index], settings[index]
        )

    def jobs(self) -> Iterator[Job]:
        return map(self.job, range(len(self)))

    def cells(self) -> Iterator[Cell]:
        """Every package that should exist, in the order of the file."""
        for stage, scope in zip(self._columns.stages, self._columns.scopes, strict=True):
            if stage is Stage.PACKAGE:
                yield Cell(*scope)

    def excluded(self) -> dict[Absence, list[Cell]]:
        """The cells of the product that are not planned, by reason, in the order of the file."""
        found: dict[Absence, list[Cell]] = {}
        for absence, head, mask in self.expansion.absent:
            pairs = self.expansion.pairs_of(mask)
            found.setdefault(absence, []).extend(Cell(*head, *pair) for pair in pairs)
        return found

    def stage_counts(self) -> dict[Stage, int]:
        counts = Counter(self._columns.stages)
        return {stage: counts[stage] for stage in Stage if counts[stage]}

    @cached_property
    def _index(self) -> dict[tuple[Stage, str], int]:
        keys = zip(self._columns.stages, map(scope_path, self._columns.scopes), strict=True)
        return {key: index for index, key in enumerate(keys)}

    def get(self, stage: Stage, path: str) -> Job | None:
        index = self._index.get((stage, path))
        return None if index is None else self.job(index)

    def find(self, stage: Stage, path: str) -> Job:
        """The job of a stage at a path, or a complaint that names the nearest."""
        job = self.get(stage, path)
        if job is None:
            wanted = job_identifier(stage, self.label, path)
            names = [job_identifier(s, self.label, p) for s, p in self._index if s is stage]
            msg = f"the plan has no job `{wanted}`"
            raise SelectionError(msg, hint=did_you_mean(wanted, names) if names else None)
        return job

    def payload(self, job: Job) -> Payload:
        """Everything that a job's fingerprint is the sha256 of."""
        return {
            "inputs": [self._columns.fingerprints[index] for index in job.inputs],
            "recipe": self.yard.project.recipe.label,
            "scope": job.path,
            "settings": job.settings.values,
            "stage": job.stage.value,
        }

    def keep(self, wanted: Iterable[int]) -> "Plan":
        """The part of this plan that makes the wanted jobs."""
        kept = set(wanted)
        for index in range(len(self) - 1, -1, -1):
            if index in kept:
                kept.update(self._columns.inputs[index])
        order = sorted(kept)
        renumbered = {old: new for new, old in enumerate(order)}
        stages, scopes, fingerprints, inputs, settings = self._columns
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
        scopes = [cell[:length] for cell in self.cells() for length in (0, 3, 4, 5)]
        return Counter(scopes)

    def packages_of(self, job: Job) -> int:
        """How many packages are made from a job's result."""
        return self._made_from[() if job.stage is Stage.PUBLISH else job.scope]
