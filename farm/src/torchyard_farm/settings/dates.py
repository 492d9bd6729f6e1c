"""Due times of schedules, in UTC, which has no daylight saving time."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_DAY = timedelta(days=1)


class ScheduleTimes(NamedTuple):
    """A time of the day, on some days of the week."""

    clock: time
    days: tuple[int, ...] = tuple(range(len(WEEK)))


def parse_times(at: str, days: Sequence[str] = ()) -> ScheduleTimes:
    """Parse `02:00` and names of days; no days mean every day."""
    found = _CLOCK.fullmatch(at)
    if found is None:
        msg = f"`{at}` is not a time of day, such as 02:00 (UTC)"
        raise ValueError(msg)
    for day in days:
        if day not in WEEK:
            msg = f"`{day}` is not a day: write {', '.join(WEEK)}"
            raise ValueError(msg)
    clock = time(int(found[1]), int(found[2]), tzinfo=UTC)
    return (
        ScheduleTimes(clock, tuple(sorted({WEEK.index(day) for day in days})))
        if days
        else ScheduleTimes(clock)
    )


def next_run(now: datetime, times: ScheduleTimes, last: datetime) -> datetime:
    """Return when the next run is due; if that is not after `now`, it is due now.

    `last` is when the last run was due, or when the schedule was configured. Only the newest of
    several missed runs is made up for.
    """
    missed = _before(now, times)
    return missed if missed > last else _after(max(now, last), times)


def _on(day: datetime, times: ScheduleTimes) -> datetime:
    return datetime.combine(day.date(), times.clock)


def _before(now: datetime, times: ScheduleTimes) -> datetime:
    """Return the last time up to a moment."""
    due = _on(now, times)
    while due > now or due.weekday() not in times.days:
        due -= _DAY
    return due


def _after(now: datetime, times: ScheduleTimes) -> datetime:
    """Return the first time after a moment."""
    due = _on(now, times)
    while due <= now or due.weekday() not in times.days:
        due += _DAY
    return due


def format_moment(moment: datetime) -> str:
    """Return a time as plans and indexes write it: `2026-11-15T14:20:00Z`."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def parse_moment(text: str) -> datetime:
    """Parse a time as `format_moment` writes it."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
