"""Fold the jobs of a plan into a provider's jobs, as coarsely as its limits require.

There are three levels. The first one that keeps the provider's limits is used:

1. for each block a job that compiles its core, and a matrix of jobs over its Pythons;
2. for each platform a matrix over all cores, then a matrix over all blocks and Pythons;
3. for each platform a matrix over its blocks, each from core to smoke test in one job.

Matrices that exceed the provider's limit are cut into several.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchyard.ci.pipeline import PART, CiJob, CiMachine, Wave, safe_seconds
from torchyard.errors import PlanError
from torchyard.model.identifier import scope_path
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Job, Plan

LEVELS = (1, 2, 3)
"""How coarsely plans can be folded, finest first."""

_BLOCK = 3
Block = tuple[str, ...]
"""Platform, compute and variant; empty for the source."""

_FLAVOUR = slice(1, 3)

Machines = Callable[[Sequence[str], Stage, Needs], CiMachine]
"""Returns the machine for jobs of a block at a stage, with their needs; or raises PlanError."""


class _Key(NamedTuple):
    """The identity of a provider's job, before it is cut."""

    wave: Wave
    group: str
    machine: CiMachine


class _Draft:
    """A provider's job under construction."""

    def __init__(self) -> None:
        self.parts: dict[str, int] = {}
        """The seconds of each part."""
        self.needs: dict[_Key, None] = {}
        self.is_split = False
        """Whether the smoke tests of its packages are separate jobs."""


class Folding(NamedTuple):
    """What to fold, and how."""

    plan: Plan
    level: int
    machines: Machines
    matrix: int
    """The most jobs of one matrix."""
    minutes: int
    """The most minutes that a job may take."""


def fold_plan(folding: Folding) -> list[CiJob]:
    """Return the jobs that a provider runs for a plan, each after the jobs it needs."""
    jobs = [job for job in folding.plan.jobs if job.stage is not Stage.PUBLISH]
    apart = _smoked_apart(jobs, folding)
    waves = {job.number: _wave(job, folding.level, apart) for job in jobs}
    first = next(job.scope[:_BLOCK] for job in jobs if job.scope)
    machines = {
        (block, wave): folding.machines(block or first, stage, needs)
        for (block, wave), (stage, needs) in _wave_needs(jobs, waves).items()
    }
    keys: dict[int, _Key] = {}
    drafts: dict[_Key, _Draft] = {}
    for job in jobs:
        wave, block = waves[job.number], job.scope[:_BLOCK]
        group = scope_path(block) if folding.level == 1 else "".join(job.scope[:1])
        key = keys[job.number] = _Key(wave, group, machines[block, wave])
        draft = drafts.setdefault(key, _Draft())
        part = _part(job, folding.level, wave)
        draft.parts[part] = draft.parts.get(part, 0) + (job.settings.needs.time or 0)
        draft.is_split |= block in apart
        for number in job.inputs:
            if keys[number] != key:
                draft.needs |= drafts[keys[number]].needs | {keys[number]: None}
    return list(_finish(drafts, folding))


def _smoked_apart(jobs: Sequence[Job], folding: Folding) -> set[Sequence[str]]:
    """Return the blocks whose smoke tests are separate jobs.

    They need another machine, or test a package of another block or Python.
    """
    packed = {job.scope for job in jobs if job.stage is Stage.PACKAGE}
    apart: set[Sequence[str]] = set()
    for job in jobs:
        if job.stage is Stage.SMOKE:
            block, needs = job.scope[:_BLOCK], job.settings.needs
            own = folding.machines(block, Stage.SMOKE, needs)
            if job.scope not in packed or own != folding.machines(block, Stage.PACKAGE, needs):
                apart.add(block)
    return apart


def _wave(job: Job, level: int, apart: set[Sequence[str]]) -> Wave:
    if job.stage is Stage.SOURCE:
        return Wave.SOURCE
    if job.stage is Stage.SMOKE and job.scope[:_BLOCK] in apart:
        return Wave.SMOKE
    is_core = job.stage is Stage.CORE and level < LEVELS[-1]
    return Wave.CORE if is_core else Wave.PACKAGES


def admit_blocks(plan: Plan, machines: Machines) -> tuple[Plan, dict[Block, PlanError]]:
    """Return the part of a plan that machines can build, and the errors of other blocks."""
    jobs = [job for job in plan.jobs if job.scope and job.stage is not Stage.PUBLISH]
    waves = {job.number: _wave(job, LEVELS[0], {job.scope[:_BLOCK]}) for job in jobs}
    refused: dict[Block, PlanError] = {}
    for (block, _), (stage, needs) in _wave_needs(jobs, waves).items():
        try:
            machines(block, stage, needs)
        except PlanError as error:
            refused.setdefault(block, error)
    for job in jobs:
        for made in (plan.jobs[number].scope[:_BLOCK] for number in job.inputs):
            if made in refused:
                refused.setdefault(job.scope[:_BLOCK], refused[made])
    kept = [job.number for job in jobs if job.scope[:_BLOCK] not in refused]
    return (plan.keep(kept) if refused else plan), refused


def _wave_needs(
    jobs: Iterable[Job], waves: Mapping[int, Wave]
) -> dict[tuple[Block, Wave], tuple[Stage, Needs]]:
    """Return for each block and wave the stage that chooses its machine, and its needs."""
    found: dict[tuple[Block, Wave], tuple[Stage, Needs]] = {}
    for job in jobs:
        key = job.scope[:_BLOCK], waves[job.number]
        stage, needs = found.get(key, (_STAGES[key[1]], Needs()))
        is_core = job.stage is Stage.CORE
        found[key] = Stage.CORE if is_core else stage, needs.joined(job.settings.needs)
    return found


_STAGES = {
    Wave.SOURCE: Stage.SOURCE,
    Wave.CORE: Stage.CORE,
    Wave.PACKAGES: Stage.PACKAGE,
    Wave.SMOKE: Stage.SMOKE,
}
"""The stage that chooses a wave's machine."""


def _part(job: Job, level: int, wave: Wave) -> str:
    """Return the matrix row of a job, or "" without a matrix."""
    if wave is Wave.SOURCE or (level == 1 and wave is Wave.CORE):
        return ""
    if level == 1:
        return job.scope[_BLOCK]
    flavour = "-".join(job.scope[_FLAVOUR])
    if wave is Wave.CORE or level == LEVELS[-1]:
        return flavour
    return f"{flavour}/{job.scope[_BLOCK]}"


def _names(drafts: Mapping[_Key, _Draft]) -> dict[_Key, str]:
    """Return a name for each job, numbered where only the machine differs."""
    counts: dict[str, int] = defaultdict(int)
    names = {}
    for key in drafts:
        words = (key.wave.value, *key.group.replace(".", "_").split("/"))
        plain = "-".join(word for word in words if word)
        counts[plain] += 1
        names[key] = plain if counts[plain] == 1 else f"{plain}-m{counts[plain]}"
    return names


def _finish(drafts: Mapping[_Key, _Draft], folding: Folding) -> Iterator[CiJob]:
    """Yield all jobs, cut to the limits of matrices and time."""
    names = _names(drafts)
    last: dict[_Key, tuple[str, ...]] = {}
    for key, draft in drafts.items():
        made = list(_cut(key, draft, names[key], folding))
        last[key] = tuple(job.name for job in made if job.round == job.rounds)
        needs = tuple(name for needed in draft.needs for name in last[needed])
        yield from (job._replace(needs=(*job.needs, *needs)) for job in made)


def _cut(key: _Key, draft: _Draft, name: str, folding: Folding) -> Iterator[CiJob]:
    """Yield a job, or several if its matrix or its time exceeds the limit."""
    rows = list(draft.parts)
    pieces = [rows[n : n + folding.matrix] for n in range(0, len(rows), folding.matrix)]
    seconds = max(draft.parts.values())
    rounds = max(1, -(-seconds // safe_seconds(folding.minutes)))
    waves = tuple(dict.fromkeys(needed.wave for needed in draft.needs))
    for piece, parts in enumerate(pieces, 1):
        stem = name if len(pieces) == 1 else f"{name}-{piece}"
        before = ""
        for number in range(1, rounds + 1):
            own = stem if number == 1 else f"{stem}-r{number}"
            yield CiJob(
                name=own,
                wave=key.wave,
                select=_select(key, folding.level),
                skip=("smoke:*",) if draft.is_split and key.wave is Wave.PACKAGES else (),
                parts=() if parts == [""] else tuple(parts),
                needs=(before,) if before else (),
                waves=(*waves, key.wave) if before else waves,
                machine=key.machine,
                seconds=seconds,
                round=number,
                rounds=rounds,
            )
            before = own


def _select(key: _Key, level: int) -> tuple[str, ...]:
    """Return the selectors of a job, with a variable for the row of its matrix."""
    match key.wave:
        case Wave.SOURCE:
            return ("source:*",)
        case Wave.CORE:
            return (f"core:*/{key.group}" if level == 1 else f"core:*/{key.group}/${PART}",)
        case Wave.PACKAGES:
            return (f"*:*/{key.group}/${PART}/*",)
        case Wave.SMOKE:
            return (f"smoke:*/{key.group}/${PART}/*",)
