"""When runs are due."""

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from torchyard_farm.settings.dates import (
    WEEK,
    ScheduleTimes,
    format_moment,
    next_run,
    parse_moment,
    parse_times,
)

MOMENTS = st.floats(1.5e9, 2e9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
TIMES = st.builds(
    lambda hour, minute, days: parse_times(f"{hour:02}:{minute:02}", sorted(days)),
    st.integers(0, 23),
    st.integers(0, 59),
    st.sets(st.sampled_from(WEEK)),
)
DAILY = parse_times("02:00")


def at(text: str) -> datetime:
    return parse_moment(f"2026-11-{text}Z")


def due_between(start: datetime, end: datetime, times: ScheduleTimes) -> list[datetime]:
    """Return all times after one moment and up to another, by brute force."""
    count = (end - start).days + 2
    days = (start.date() + timedelta(days=n) for n in range(count))
    found = (datetime.combine(day, times.clock) for day in days if day.weekday() in times.days)
    return [due for due in found if start < due <= end]


def test_a_first_run_is_the_next_one() -> None:
    seen = at("15T10:00:00")
    assert next_run(seen, DAILY, seen) == at("16T02:00:00")


def test_a_run_that_was_missed_is_due_at_once() -> None:
    assert next_run(at("16T09:00:00"), DAILY, at("15T02:00:00")) == at("16T02:00:00")


def test_of_seven_missed_runs_one_is_made_up_for() -> None:
    now, last = at("22T09:00:00"), at("15T02:00:00")
    due = next_run(now, DAILY, last)
    assert due == at("22T02:00:00")
    assert next_run(now, DAILY, due) == at("23T02:00:00")


def test_only_on_some_days() -> None:
    times = parse_times("23:30", ("sun",))  # the 15th is one
    assert next_run(at("15T23:31:00"), times, at("15T23:30:00")) == at("22T23:30:00")


def test_a_clock_that_goes_back_repeats_nothing() -> None:
    assert next_run(at("15T01:00:00"), DAILY, at("15T02:00:00")) == at("16T02:00:00")


@given(MOMENTS, TIMES, st.lists(st.integers(0, 20 * 86_400), max_size=30))
@example(at("15T02:00:00"), DAILY, [0, 0, 86_400, 86_399, 1])
def test_each_run_is_done_once_and_missed_ones_as_one(
    start: datetime, times: ScheduleTimes, naps: list[int]
) -> None:
    """At arbitrary polls: what became due since the last poll is run once."""
    last = now = start
    for nap in naps:
        before, now = now, now + timedelta(seconds=nap)
        missed = due_between(before, now, times)
        due = next_run(now, times, last)
        assert (due <= now) == bool(missed)
        if due <= now:
            assert due == missed[-1]
            last = due
        assert next_run(now, times, last) > now
        ahead = due_between(now, now + timedelta(days=8), times)
        assert next_run(now, times, last) == ahead[0]


@given(MOMENTS)
def test_a_moment_is_read_back(moment: datetime) -> None:
    assert parse_moment(format_moment(moment)) == moment.replace(microsecond=0)
