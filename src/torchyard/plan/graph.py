"""The plan itself: an immutable graph of jobs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import Cell, job_identifier, scope_of, scope_path
from torchyard.model.recipe import DEPTH, Stage
from torchyard.model.suggest import nearest
from torchyard.plan.constraints import Scope
from torchyard.plan.expand import AbsentCell, Expansion
from torchyard.plan.select import find_subset, subset_test, warnings
from torchyard.plan.settings import Settings

_COMPARED = 300
"""Suggest a similar job only among at most this many: comparing more takes too long."""


class Job(NamedTuple):
    """One node of a plan."""

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

    @property
    def key(self) -> tuple[Stage, Scope]:
        """The stage and scope, which identify the same job in another plan."""
        return self.stage, self.scope


class Plan:
    """An immutable graph of jobs, sorted so that each comes after its inputs."""

    def __init__(
        self, expansion: Expansion, jobs: Iterable[Job], *, subset: str | None, partial: bool
    ) -> None:
        self.config: Config = expansion.config
        self.expansion = expansion
        self.subset = subset
        self.partial = partial
        self.jobs = tuple(jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def fingerprints(self) -> list[str]:
        return [job.fingerprint for job in self.jobs]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Rules and values of the file without effect."""
        return tuple(warnings(self.expansion))

    @property
    def label(self) -> str:
        return self.config.project.label

    def cells(self) -> Iterator[Cell]:
        """Return the cell of every package, in the order of the file."""
        return (Cell(*job.scope) for job in self.jobs if job.stage is Stage.PACKAGE)

    def absent(self) -> Sequence[AbsentCell]:
        """Return the cells that rules and tables leave out; none for a selected part of a plan."""
        if self.partial:
            return ()
        if self.subset is None:
            return self.expansion.absent
        is_member = subset_test(self.expansion, find_subset(self.config, self.subset))
        return [missing for missing in self.expansion.absent if is_member(missing.cell)]

    def stage_counts(self) -> dict[Stage, int]:
        counts = Counter(job.stage for job in self.jobs)
        return {stage: counts[stage] for stage in Stage if counts[stage]}

    @cached_property
    def _index(self) -> dict[tuple[Stage, Scope], Job]:
        return {job.key: job for job in self.jobs}

    def get(self, stage: Stage, scope: Scope) -> Job | None:
        return self._index.get((stage, scope))

    def find(self, stage: Stage, path: str) -> Job:
        """Return the job of a stage at a path, or raise SelectionError."""
        job = self.get(stage, scope_of(stage, path))
        if job is None:
            msg = f"the plan has no job `{job_identifier(stage, self.label, path)}`"
            paths = [other.path for other in self.jobs if other.stage is stage]
            near = nearest(path, paths) if len(paths) <= _COMPARED else None
            hint = f"did you mean `{job_identifier(stage, self.label, near)}`?" if near else None
            raise SelectionError(msg, hint=hint or "`torchyard plan --list jobs` lists the jobs")
        return job

    def fingerprint(self, stage: Stage, scope: Scope) -> str | None:
        job = self.get(stage, scope)
        return job.fingerprint if job else None

    def with_inputs(self, numbers: Iterable[int]) -> list[Job]:
        """Return jobs and all their inputs, direct or not, in the order of the plan."""
        waiting = list(numbers)
        found = set(waiting)
        while waiting:
            new = set(self.jobs[waiting.pop()].inputs) - found
            found |= new
            waiting += new
        return [self.jobs[number] for number in sorted(found)]

    def keep(self, wanted: Iterable[int]) -> "Plan":
        """Return the part of this plan that makes the wanted jobs."""
        kept = self.with_inputs(wanted)
        renumbered = {job.number: number for number, job in enumerate(kept)}
        jobs = (
            job._replace(
                number=renumbered[job.number], inputs=tuple(renumbered[i] for i in job.inputs)
            )
            for job in kept
        )
        return Plan(self.expansion, jobs, subset=self.subset, partial=True)

    @cached_property
    def _made_from(self) -> Counter[Scope]:
        """The number of packages below each scope: everything, a block, a block's Python."""
        depths = sorted(set(DEPTH.values()))
        return Counter(cell[:depth] for cell in self.cells() for depth in depths)

    def packages_of(self, job: Job) -> int:
        """Return how many packages are made from a job's result."""
        return self._made_from[() if job.stage is Stage.PUBLISH else job.scope]
