"""Which of the waiting jobs begins next, and on which machine.

The most urgent one that fits. Of several that are equally urgent, one whose large inputs are on a
machine that is idle; no machine stays idle for the sake of that, but for a moment. A job that fits
nowhere gets the next room on one machine, which others may not take from it.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from torchyard_farm.scheduling.locality import InputLocality
from torchyard_farm.scheduling.resources import Resources

_OVERDUE = 7200.0
"""Seconds after which a job that waits is not passed over any more, for whatever reason."""


class PendingJob(NamedTuple):
    """A request that waits: its job's urgency, since when, what it books and what it is made from.

    `barred` are machines that may not have it now.
    """

    request: int
    fingerprint: str
    urgency: int
    since: float
    wants: Resources
    inputs: Mapping[str, int]
    barred: frozenset[str] = frozenset()

    @property
    def rank(self) -> tuple[int, int]:
        return -self.urgency, self.request

    def is_foreign(self, found: int) -> bool:
        """Whether most of its inputs are missing on a machine where so much of them is."""
        return 2 * found < sum(self.inputs.values())

    def is_overdue(self, now: float) -> bool:
        return now - self.since > _OVERDUE


class WorkerCapacity(NamedTuple):
    """A machine: what it has, what is booked of it, and how many more jobs it could begin.

    `strays` are jobs that run there already, and that nobody follows. It `rests` for a moment when
    a job has ended: what is to be made from that is about to come, and belongs there.
    """

    name: str
    has: Resources
    booked: Resources
    idle: int = 0
    strays: Collection[str] = ()
    rests: bool = False

    @property
    def room(self) -> Resources:
        return Resources(self.has.memory - self.booked.memory, self.has.disk - self.booked.disk)

    def can_hold(self, wish: PendingJob) -> bool:
        """Whether there is room for a job; one that runs there has booked it."""
        return wish.fingerprint in self.strays or wish.wants.fits(self.room)

    def with_job(self, wish: PendingJob) -> "WorkerCapacity":
        held = Resources() if wish.fingerprint in self.strays else wish.wants
        return self._replace(booked=self.booked.plus(held), idle=self.idle - 1)


class Placement(NamedTuple):
    """A job, and the machine that takes it."""

    wish: PendingJob
    machine: str


def reserve_workers(
    wishes: Iterable[tuple[PendingJob, Collection[str]]],
    places: Mapping[str, WorkerCapacity],
    now: float,
) -> dict[str, PendingJob]:
    """Give each job for which there is no room one of its machines: the one that lacks least.

    What is reserved can only become freer, so it does not wander about for long.
    """
    held: dict[str, PendingJob] = {}
    for wish, machines in sorted(wishes, key=lambda one: (not one[0].is_overdue(now), one[0].rank)):
        able = [places[name] for name in machines if name in places]
        able = [place for place in able if wish.wants.fits(place.has)]
        if any(place.can_hold(wish) for place in able):
            continue
        free = [place for place in able if place.name not in held]
        if free:
            best = min(free, key=lambda place: (wish.wants.lack(place.room), place.name))
            held[best.name] = wish
    return held


def may_start(
    wish: PendingJob, place: WorkerCapacity, holder: PendingJob | None, now: float
) -> bool:
    """Whether a machine may take a job, one that is reserved for another job, too."""
    if not place.idle or place.name in wish.barred or not place.can_hold(wish):
        return False
    if holder is None or holder.request == wish.request or wish.fingerprint in place.strays:
        return True
    return wish.urgency > holder.urgency and not holder.is_overdue(now)


def choose_placement(
    wishes: Iterable[PendingJob],
    places: Collection[WorkerCapacity],
    held: Mapping[str, PendingJob],
    trees: InputLocality,
    now: float,
) -> Placement | None:
    """Choose a job and a machine."""
    running = {name for place in places for name in place.strays}
    for _, group in groupby(sorted(wishes, key=lambda wish: wish.rank), lambda wish: wish.urgency):
        pairs = [
            (wish, place)
            for wish in _different(group, running)
            for place in places
            if may_start(wish, place, held.get(place.name), now)
            and not (place.rests and wish.is_foreign(trees.found(place.name, wish.inputs)))
        ]
        if pairs:
            wish, place = max(pairs, key=lambda pair: _merit(pair[0], pair[1], trees, now))
            return Placement(wish, place.name)
    return None


def _merit(
    wish: PendingJob, place: WorkerCapacity, trees: InputLocality, now: float
) -> tuple[object, ...]:
    """What speaks for a job on a machine, among equally urgent ones: the most important first.

    Of jobs whose inputs are there it is one that others would have to fetch more for.
    """
    return (
        -wish.request if wish.is_overdue(now) else -math.inf,
        wish.fingerprint in place.strays,
        trees.found(place.name, wish.inputs),
        -trees.spread(wish.inputs),
        -wish.request,
        place.room,
        place.name,
    )


def _different(wishes: Iterable[PendingJob], running: Collection[str]) -> list[PendingJob]:
    """The oldest of those that differ in nothing else."""
    found: dict[tuple[object, ...], PendingJob] = {}
    for wish in wishes:
        name = wish.fingerprint if wish.fingerprint in running else ""
        found.setdefault((name, wish.wants, *wish.inputs, wish.barred), wish)
    return list(found.values())
