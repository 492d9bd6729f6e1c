"""Decisions about memory, on recorded and on simulated numbers."""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import pytest

from torchyard.engines.remembered_units import ExpectedUnits
from torchyard.engines.throttle import Decision, Pace
from torchyard.host.memory import Memory
from torchyard.host.process_tree import LeafProcess

GB = 10**9
TICK = 0.25


def workers(*sizes: float, cpu: float = 0, stopped: Sequence[int] = ()) -> list[LeafProcess]:
    """Make workers of so many gigabytes, oldest first; their pids are 0, 1, 2 …"""
    return [LeafProcess(n, n, round(size * GB), cpu, n in stopped) for n, size in enumerate(sizes)]


def pids(found: Sequence[LeafProcess]) -> list[int]:
    return [worker.pid for worker in found]


def memory(available: float, total: float = 16, pressure: float | None = None) -> Memory:
    return Memory(round(available * GB), round(total * GB), pressure)


@pytest.mark.parametrize(
    ("available", "slots", "allowed"),
    [(0.5, 16, 1), (3, 16, 1), (9, 16, 4), (32, 16, 16), (500, 16, 16)],
)
def test_a_slow_start_where_memory_is_short(available: float, slots: int, allowed: int) -> None:
    assert Pace(slots, memory(available, available)).allowed == allowed


def test_nothing_happens_where_there_is_plenty() -> None:
    pace = Pace(8, memory(60, 64))
    sizes = [0.1, 0.4, 0.9, 1.2, 0.6, 0.3, 1.8, 0.2]
    for step in range(40):
        now = workers(*(size * (step % 10) / 10 for size in sizes), cpu=step)
        used = sum(worker.memory for worker in now) / GB
        assert pace.decide(memory(60 - used, 64), now, ()) == Decision(8, [], [], "as before")


def test_slots_are_added_one_at_a_time_once_peaks_are_known() -> None:
    pace = Pace(8, memory(3, 4))
    for step in range(9):
        assert pace.decide(memory(2.5, 4), workers(0.5, cpu=step), ()).allowed == 1
    allowed = [pace.decide(memory(3, 4), [], ()).allowed for _ in range(6)]
    assert allowed == [2, 3, 4, 5, 5, 5]  # five of half a gigabyte, and a quarter in reserve


def test_nothing_is_added_under_pressure() -> None:
    pace = Pace(8, memory(4))
    for step in range(9):
        pace.decide(memory(4), workers(0.1, cpu=step), ())
    assert pace.decide(memory(4, pressure=50), [], ()).allowed == 2
    assert pace.decide(memory(4, pressure=1), [], ()).allowed == 3


def test_the_youngest_pause_before_the_oldest_runs_out_of_room() -> None:
    pace = Pace(4, memory(8, 8))
    for size in (0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4):
        now = workers(*[size] * 4, cpu=size)
        assert pace.decide(memory(8 - 4 * size, 8), now, ()).pause == []
    decision = pace.decide(memory(1.2, 8), workers(1.7, 1.7, 1.7, 1.7, cpu=2), ())
    assert pids(decision.pause) == [1, 2, 3]
    assert decision.allowed < 4
    assert decision.reason.startswith("memory is short, 3 compilers paused: 1.2 GB available")


def test_the_paused_go_on_oldest_first_when_there_is_room() -> None:
    pace = Pace(4, memory(8, 8))
    pace.decide(memory(2, 8), workers(2, 1, 1, 1, stopped=[1, 2, 3]), {1, 2, 3})
    later = workers(2, 1, 1, 1, stopped=[1, 2, 3])[1:]
    decision = pace.decide(memory(4, 8), later, {1, 2, 3})
    assert pids(decision.resume) == [1]


def test_one_goes_on_when_none_runs_however_little_there_is() -> None:
    pace = Pace(4, memory(8, 8))
    decision = pace.decide(memory(0.01, 8), workers(2, 2, stopped=[0, 1]), {0, 1})
    assert pids(decision.resume) == [0]


def test_one_goes_on_and_stays_so_when_the_older_only_wait() -> None:
    pace = Pace(4, memory(8, 8))
    pids_of = [
        pids(pace.decide(memory(0.1, 8), workers(0.001, 2, 2, stopped=[1, 2]), {1, 2}).resume)
        for _ in range(12)
    ]
    assert pids_of[0] == []
    assert pids_of[-1] == [1]
    now = [*workers(0.001), *workers(2, 2, 2, cpu=1, stopped=[2])[1:]]
    decision = pace.decide(memory(0.1, 8), now, {2})
    assert (decision.pause, decision.resume) == ([], [])


def test_what_somebody_else_has_stopped_stays_so() -> None:
    pace = Pace(4, memory(8, 8))
    decision = pace.decide(memory(6, 8), workers(1, 1, stopped=[0, 1]), ())
    assert decision.resume == []


class Unit(NamedTuple):
    """A translation unit: how much memory the compiler takes in the end, and after how long."""

    peak: float
    seconds: float


class Config:
    """Simulates a build on some processors: compilers grow evenly until they end."""

    def __init__(self, slots: int, total: float, cores: int, units: Sequence[Unit]) -> None:
        self.pace, self.total, self.cores = Pace(slots, memory(total, total)), total, cores
        self.todo = list(units)
        self.running: dict[int, tuple[Unit, float]] = {}
        self.paused: set[int] = set()
        self.most = self.pauses = self.idle = 0

    def run(self) -> float:
        """Build everything, within memory, and return how many seconds it took."""
        pid = count()
        for tick in count():
            while self.todo and len(self.running) < self.pace.allowed:
                self.running[next(pid)] = self.todo.pop(0), 0.0
            if not self.running:
                return tick * TICK
            self.step()
            self.most = max(self.most, len(self.running))
        raise AssertionError

    def held(self, unit: Unit, done: float) -> float:
        """Return what a compiler has when so much of its work is done."""
        return unit.peak * done

    def expected(self) -> ExpectedUnits | None:
        """Return what is known of the running units from earlier builds."""
        return None

    def step(self) -> None:
        active = self.running.keys() - self.paused
        self.idle = 0 if active else self.idle + 1
        assert self.idle < 2, "nothing runs, and nothing is resumed"
        for pid in active:
            unit, done = self.running[pid]
            done += TICK * min(1, self.cores / len(active)) / unit.seconds
            self.running[pid] = unit, done
        used = sum(self.held(unit, done) for unit, done in self.running.values())
        assert used < self.total, "killed for want of memory"
        now = [
            LeafProcess(
                pid,
                pid,
                round(self.held(unit, done) * GB),
                done * unit.seconds,
                pid in self.paused,
            )
            for pid, (unit, done) in self.running.items()
        ]
        free = memory(self.total - used, self.total)
        decision = self.pace.decide(free, now, self.paused, self.expected())
        self.pauses += len(decision.pause)
        self.paused = (self.paused | set(pids(decision.pause))) - set(pids(decision.resume))
        self.running = {pid: life for pid, life in self.running.items() if life[1] < 1}
        self.paused &= self.running.keys()


def test_a_build_beyond_memory_takes_little_longer_than_the_best_possible() -> None:
    config = Config(slots=16, total=3, cores=2, units=[Unit(1, 6)] * 12)
    seconds = config.run()
    assert config.most == 2
    assert config.pauses == 0
    assert seconds <= 1.25 * 12 * 6 / 2


def test_a_surprise_after_many_small_ones_is_survived() -> None:
    config = Config(slots=16, total=3, cores=2, units=[Unit(0.01, 1)] * 80 + [Unit(1, 6)] * 12)
    config.run()
    assert config.most == 16
    assert config.pauses > 0


def test_all_slots_are_used_where_memory_suffices() -> None:
    config = Config(
        slots=8, total=20, cores=8, units=[Unit(0.8, 6), Unit(2, 10), Unit(0.3, 3)] * 20
    )
    config.run()
    assert config.most == 8
    assert config.pauses == 0


@pytest.mark.parametrize("total", [2, 4, 8, 16])
@pytest.mark.parametrize("cores", [2, 8, 32])
def test_mixed_units_never_exceed_memory(total: float, cores: int) -> None:
    units = [Unit(0.2 + (n * 7 % 10) / 6, 3 + n * 3 % 8) for n in range(60)]
    Config(slots=cores, total=total, cores=cores, units=units).run()


def test_memory_that_is_about_to_come_back_costs_no_slot() -> None:
    """A compiler has ended, its memory is not back yet, and its successor has started."""
    pace = Pace(2, memory(3, 3))
    for moment in range(10):
        pace.decide(memory(0.9, 3), workers(1, 1, cpu=moment), ())
    pace.decide(memory(0.96, 3), (), ())
    pace.allowed = 2
    short = memory(0.95, 3)
    allowed = [pace.decide(short, workers(0.9, 0.1, cpu=n), ()).allowed for n in range(20, 22)]
    assert allowed == [2, 2]
    assert pace.decide(memory(1.5, 3), workers(0.9, 0.2, cpu=30), ()).allowed == 2
    allowed = [pace.decide(short, workers(0.9, 0.1, cpu=n), ()).allowed for n in range(40, 43)]
    assert allowed == [2, 2, 1]
