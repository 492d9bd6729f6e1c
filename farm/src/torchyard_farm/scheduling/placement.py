"""Which pending job starts next, and on which machine.

The most urgent job that fits is next. Of equally urgent ones, a job whose large inputs are on an
idle machine is preferred; but no machine stays idle for that, except for a short cooldown. A job
that fits nowhere reserves the next free resources of a machine.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from torchyard_farm.scheduling.locality import InputLocality
from torchyard_farm.scheduling.resources import Resources

_OVERDUE = 7200.0
"""Seconds after which no other job may overtake a pending one."""


class PendingJob(NamedTuple):
    """A pending request: its job's urgency, age, needed resources and inputs with their sizes.

    `excluded` are machines that may not run it now.
    """

    request: int
    fingerprint: str
    urgency: int
    since: float
    needs: Resources
    inputs: Mapping[str, int]
    excluded: frozenset[str] = frozenset()

    @property
    def rank(self) -> tuple[int, int]:
        return -self.urgency, self.request

    def is_remote(self, local: int) -> bool:
        """Return whether most inputs are missing on a machine that has `local` MB of them."""
        return 2 * local < sum(self.inputs.values())

    def is_overdue(self, now: float) -> bool:
        return now - self.since > _OVERDUE


class WorkerCapacity(NamedTuple):
    """A machine: its total and reserved resources, and how many more jobs it could start.

    `orphans` are jobs that run there and that no build follows. While it `is_cooling_down` after a
    job, the successors of that job are about to be submitted, and should run there.
    """

    name: str
    total: Resources
    reserved: Resources
    free_slots: int = 0
    orphans: Collection[str] = ()
    is_cooling_down: bool = False

    @property
    def free(self) -> Resources:
        return Resources(
            self.total.memory - self.reserved.memory, self.total.disk - self.reserved.disk
        )

    def has_room_for(self, job: PendingJob) -> bool:
        """Return whether a job fits; a running one already has its resources."""
        return job.fingerprint in self.orphans or job.needs.fits(self.free)

    def with_job(self, job: PendingJob) -> "WorkerCapacity":
        added = Resources() if job.fingerprint in self.orphans else job.needs
        return self._replace(reserved=self.reserved.plus(added), free_slots=self.free_slots - 1)


class Placement(NamedTuple):
    """A job, and the machine that will run it."""

    job: PendingJob
    machine: str


def reserve_workers(
    pending: Iterable[tuple[PendingJob, Collection[str]]],
    capacities: Mapping[str, WorkerCapacity],
    now: float,
) -> dict[str, PendingJob]:
    """Reserve a machine for each job that fits nowhere: the one with the smallest shortage.

    A reserved machine can only become freer, so the choice is stable.
    """
    reserved: dict[str, PendingJob] = {}
    for job, machines in sorted(pending, key=lambda p: (not p[0].is_overdue(now), p[0].rank)):
        able = [capacities[name] for name in machines if name in capacities]
        able = [capacity for capacity in able if job.needs.fits(capacity.total)]
        if any(capacity.has_room_for(job) for capacity in able):
            continue
        free = [capacity for capacity in able if capacity.name not in reserved]
        if free:
            best = min(free, key=lambda machine: (job.needs.shortage(machine.free), machine.name))
            reserved[best.name] = job
    return reserved


def may_start(
    job: PendingJob, capacity: WorkerCapacity, holder: PendingJob | None, now: float
) -> bool:
    """Return whether a machine, which may be reserved for `holder`, can run a job now."""
    if not capacity.free_slots or capacity.name in job.excluded or not capacity.has_room_for(job):
        return False
    if holder is None or holder.request == job.request or job.fingerprint in capacity.orphans:
        return True
    return job.urgency > holder.urgency and not holder.is_overdue(now)


def choose_placement(
    pending: Iterable[PendingJob],
    capacities: Collection[WorkerCapacity],
    reserved: Mapping[str, PendingJob],
    locality: InputLocality,
    now: float,
) -> Placement | None:
    """Return the next job and its machine, or None if no job can start now."""
    running = {name for capacity in capacities for name in capacity.orphans}
    for _, group in groupby(sorted(pending, key=lambda job: job.rank), lambda job: job.urgency):
        pairs = [
            (job, spot)
            for job in _distinct(group, running)
            for spot in capacities
            if may_start(job, spot, reserved.get(spot.name), now)
            and not (
                spot.is_cooling_down and job.is_remote(locality.local_size(spot.name, job.inputs))
            )
        ]
        if pairs:
            job, best = max(pairs, key=lambda pair: _merit(pair[0], pair[1], locality, now))
            return Placement(job, best.name)
    return None


def _merit(
    job: PendingJob, capacity: WorkerCapacity, locality: InputLocality, now: float
) -> tuple[object, ...]:
    """Return the sort key of a job on a machine, among equally urgent jobs; greater is better.

    Of jobs with local inputs, one that needs more downloads elsewhere is better.
    """
    return (
        -job.request if job.is_overdue(now) else -math.inf,
        job.fingerprint in capacity.orphans,
        locality.local_size(capacity.name, job.inputs),
        -locality.total_size(job.inputs),
        -job.request,
        capacity.free,
        capacity.name,
    )


def _distinct(pending: Iterable[PendingJob], running: Collection[str]) -> list[PendingJob]:
    """Return the oldest of each group of jobs that are equal for placement."""
    found: dict[tuple[object, ...], PendingJob] = {}
    for job in pending:
        name = job.fingerprint if job.fingerprint in running else ""
        found.setdefault((name, job.needs, *job.inputs, job.excluded), job)
    return list(found.values())
