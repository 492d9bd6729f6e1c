"""How many jobs are submitted: enough to keep all machines busy, and not many more."""

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from farm.tests.factories import KIND, machine, made_plan
from torchyard_farm.scheduling.job_classes import queue_window
from torchyard_farm.scheduling.plan_tracker import PlanTracker
from torchyard_farm.scheduling.resources import Resources, sum_resources
from torchyard_farm.settings.farm import FarmMachine

AMOUNTS = st.builds(Resources, st.integers(1, 4), st.integers(1, 4))


class Host(NamedTuple):
    """A machine that may be disconnected, and its running jobs."""

    machine: FarmMachine
    running: dict[int, Resources]
    is_there: bool = True

    def can_begin(self, wants: Resources) -> bool:
        has = Resources(self.machine.memory, self.machine.disk)
        after = sum_resources([*self.running.values(), wants])
        return self.is_there and len(self.running) < self.machine.slots and after.fits(has)


GROUPS = st.lists(st.tuples(AMOUNTS, st.integers(1, 30)), max_size=5)
"""Resources and number of equal jobs; the first ones are the most urgent."""

HOSTS = st.builds(
    lambda has, slots, is_there: Host(
        machine(memory=has.memory, disk=has.disk, slots=slots), {}, is_there
    ),
    AMOUNTS,
    st.integers(1, 4),
    st.booleans(),
)


def take(tracker: PlanTracker) -> Iterable[int]:
    while found := tracker.next():
        yield found[1]


@settings(deadline=None)
@given(st.lists(HOSTS, min_size=1, max_size=4), GROUPS, st.randoms())
def test_no_machine_waits_while_a_job_that_it_could_do_is_not_sent(
    hosts: list[Host], groups: list[tuple[Resources, int]], chance: Random
) -> None:
    """In any order of machines, starts and ends of jobs."""
    window = queue_window(host.machine for host in hosts)
    tracker = PlanTracker({KIND: window})
    wants = dict(enumerate(size for size, count in groups for _ in range(count)))
    tracker.add(made_plan({number: [] for number in wants}, wants=wants))
    unsent, waiting = set(wants), set[int]()
    while True:
        waiting.update(take(tracker))
        unsent -= waiting
        assert tracker.counts("plan").out <= window * (1 + len(set(wants.values())) / 2), (
            "a long queue is slow"
        )
        for host in hosts:
            if any(host.can_begin(wants[job]) for job in unsent):
                assert any(host.can_begin(wants[job]) for job in waiting)
        begins = [(h, job) for job in waiting for h in hosts if h.can_begin(wants[job])]
        ends = [(host, job) for host in hosts for job in host.running]
        if not begins and not ends:
            break
        if begins and (not ends or chance.random() < 0.7):
            host, job = chance.choice(begins)
            host.running[job] = wants[job]
            waiting.remove(job)
        else:
            host, job = chance.choice(ends)
            del host.running[job]
            tracker.end("plan", job, good=True)
    idle = [host for host in hosts if host.is_there]
    assert not any(host.can_begin(wants[job]) for host in idle for job in unsent | waiting)


def test_urgent_jobs_for_a_machine_that_is_away_keep_no_other_idle() -> None:
    large, small = Resources(64, 1), Resources(4, 1)
    wants = {number: large if number < 50 else small for number in range(100)}
    tracker = PlanTracker({KIND: 8})
    tracker.add(made_plan({number: [] for number in wants}, wants=wants))
    assert list(take(tracker)) == [*range(8), *range(50, 54)]
    tracker.end("plan", 50, good=True)
    assert list(take(tracker)) == [54]


def test_a_large_job_waits_for_its_turn_among_small_ones() -> None:
    wants = {number: Resources(64 if number == 8 else 4, 1) for number in range(20)}
    tracker = PlanTracker({KIND: 8})
    tracker.add(made_plan({number: [] for number in wants}, wants=wants))
    assert list(take(tracker)) == list(range(8))
    tracker.end("plan", 3, good=True)
    assert list(take(tracker)) == [8]
