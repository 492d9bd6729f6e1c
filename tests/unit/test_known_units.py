"""Decisions about compilers whose needs are known from an earlier build, on simulated numbers."""

from collections.abc import Sequence
from itertools import count

import pytest
from tests.unit.test_throttle import GB, TICK, Config, Unit, memory, pids, workers

from torchyard.engines.remembered_units import ExpectedUnits
from torchyard.engines.throttle import Candidate, Pace, next_compilers
from torchyard.host.process_tree import LeafProcess


def known(*peaks: float) -> ExpectedUnits:
    """Return what workers 0, 1, 2 … will take, in gigabytes."""
    return ExpectedUnits({pid: round(peak * GB) for pid, peak in enumerate(peaks)}, GB)


def candidate(pid: int, has: float, needs: float) -> Candidate:
    return Candidate(LeafProcess(pid, pid, round(has * GB), 0), round(needs * GB))


def chosen(room: float, running: list[Candidate], waiting: list[Candidate]) -> list[int]:
    return [one.worker.pid for one in next_compilers(round(room * GB), running, waiting)]


# ---------------------------------------------------------------------------- the next compilers


def test_the_largest_goes_first_and_the_rest_fill_what_is_left() -> None:
    waiting = [candidate(n, 0, size) for n, size in enumerate((1, 2, 0.5))]
    assert chosen(2.6, [], waiting) == [1, 2]


def test_what_runs_will_still_grow() -> None:
    assert chosen(2, [candidate(0, 0.1, 1.5)], [candidate(1, 0, 0.6)]) == []
    assert chosen(2, [candidate(0, 1.6, 0)], [candidate(1, 0, 0.6)]) == [1]


def test_one_runs_however_little_there_is() -> None:
    assert chosen(-1, [], [candidate(0, 0, 5), candidate(1, 0, 6)]) == [0]
    assert chosen(-1, [candidate(2, 0, 0)], [candidate(0, 0, 5)]) == []


# -------------------------------------------------------------------------------- the pace


def test_one_that_does_not_fit_waits_from_its_first_moment_and_a_smaller_one_does_not() -> None:
    pace = Pace(8, memory(3, 3))
    now = workers(0.1, 0.1, 0.1)
    expected = known(2, 1.5, 0.4)
    decision = pace.decide(memory(2.7, 3), now, (), expected)
    assert pids(decision.pause) == [1]
    assert decision.allowed == 5  # three that fit on average, and two that may wait
    assert decision.reason.startswith("compilers wait for memory, as in earlier builds: 2.7 GB")
    later = workers(2, 0.1, 0.4, cpu=5, stopped=[1])
    assert pids(pace.decide(memory(0.5, 3), later, {1}, expected).resume) == []
    decision = pace.decide(memory(2.4, 3), later[1:], {1}, expected)
    assert (pids(decision.resume), decision.reason) == ([1], "as before")


def test_processes_that_make_no_unit_never_wait() -> None:
    pace = Pace(8, memory(1, 3))
    assert pace.decide(memory(0.01, 3), workers(0.5, 0.5), (), known()).pause == []


def test_all_but_the_oldest_are_paused_if_they_take_more_than_before() -> None:
    """Or if another program of the machine takes the memory."""
    pace = Pace(8, memory(3, 3))
    expected = known(1, 1)
    assert pace.decide(memory(2.8, 3), workers(0.1, 0.1), (), expected).pause == []
    decision = pace.decide(memory(0.2, 3), workers(0.5, 0.9, cpu=3), (), expected)
    assert pids(decision.pause) == [1]


# --------------------------------------------------------------------------- whole builds


def held(unit: Unit, done: float) -> float:
    return unit.peak * min(1, 2 * done)


class KnownConfig(Config):
    """A build whose units are known from an earlier one; compilers grow in their first half."""

    def __init__(self, slots: int, total: float, cores: int, units: Sequence[Unit]) -> None:
        super().__init__(slots, total, cores, units)
        self.mean = sum(unit.peak for unit in units) / len(units)

    def held(self, unit: Unit, done: float) -> float:
        return held(unit, done)

    def expected(self) -> ExpectedUnits:
        peaks = {pid: round(unit.peak * GB) for pid, (unit, _) in self.running.items()}
        return ExpectedUnits(peaks, self.mean * GB)


def fixed(jobs: int, total: float, cores: int, units: Sequence[Unit]) -> float:
    """Return what a build takes with a fixed number of jobs; no end if a compiler is killed."""
    todo, running = list(units), [(Unit(0, 1), 1.0)] * 0
    for tick in count():
        while todo and len(running) < jobs:
            running.append((todo.pop(0), 0.0))
        if not running:
            return tick * TICK
        pace = TICK * min(1, cores / len(running))
        running = [(unit, done + pace / unit.seconds) for unit, done in running]
        if sum(held(unit, done) for unit, done in running) >= total:
            return float("inf")
        running = [(unit, done) for unit, done in running if done < 1]
    raise AssertionError


MIXES = {
    "alike": [Unit(0.8, 8)] * 24,
    "mixed": [Unit(0.2 + (n * 7 % 10) / 6, 3 + n * 3 % 8) for n in range(60)],
    "heavy last": [*[Unit(0.3, 3)] * 40, *[Unit(1.5, 15)] * 5],
    "heavy first": [*[Unit(1.5, 15)] * 5, *[Unit(0.3, 3)] * 40],
    "pairs": [Unit(1.7, 15), Unit(0.3, 3), Unit(1.7, 15), Unit(0.9, 9)] * 8,
}


@pytest.mark.parametrize("total", [2.5, 4, 8])
@pytest.mark.parametrize("cores", [2, 32])
@pytest.mark.parametrize("mix", MIXES)
def test_nothing_is_killed_and_little_is_lost_to_the_best_fixed_number(
    total: float, cores: int, mix: str
) -> None:
    units = MIXES[mix]
    room = total - max(0.128, min(1, total / 16))  # what is left of memory for others
    best = min(fixed(jobs, room, cores, units) for jobs in range(1, cores + 1))
    ours = KnownConfig(slots=cores, total=total, cores=cores, units=units).run()
    assert ours <= 1.1 * best + 1  # a second until all slots are in use
