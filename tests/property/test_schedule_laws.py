"""Laws of simulated builds."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from torchyard.insight.schedule import Work, critical_path, makespan


@st.composite
def works(draw: st.DrawFn) -> Work:
    """Commands, each of which may need some of those before it."""
    seconds = draw(st.lists(st.integers(0, 50), min_size=1, max_size=12))
    needs = [
        tuple(sorted(draw(st.sets(st.integers(0, number - 1), max_size=3)))) if number else ()
        for number in range(len(seconds))
    ]
    return Work(tuple(map(float, seconds)), tuple(needs))


@given(works())
def test_one_slot_takes_the_time_of_all_commands(work: Work) -> None:
    assert makespan(work, 1) == sum(work.seconds)


@given(works())
def test_many_slots_take_the_time_of_the_critical_path(work: Work) -> None:
    path = critical_path(work)
    assert makespan(work, len(work.seconds)) == sum(work.seconds[number] for number in path)
    assert all(first in work.needs[second] for first, second in pairwise(path))


@given(works(), st.integers(2, 5))
def test_slots_cannot_beat_the_work_nor_leave_more_idle_than_the_path_explains(
    work: Work, slots: int
) -> None:
    """Graham's bound: a slot is idle only while the critical path is worked on."""
    path = sum(work.seconds[number] for number in critical_path(work))
    least = max(path, sum(work.seconds) / slots)
    most = sum(work.seconds) / slots + path * (1 - 1 / slots)
    assert least - 1e-6 <= makespan(work, slots) <= most + 1e-6
