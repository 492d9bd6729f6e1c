"""What day and what moment it is: allowances end some day, and channels keep a log."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """The moment, for what is reckoned with."""
    return datetime.now(tz=UTC)


def current_date() -> date:
    """The same day for everybody, wherever they are."""
    return now().date()


def current_moment() -> str:
    """The moment as indexes write it: `2026-11-15T14:20:00Z`."""
    return f"{now():%Y-%m-%dT%H:%M:%SZ}"
