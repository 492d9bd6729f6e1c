"""The current time in UTC, for allowances that expire and for channel logs."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """Return the current time."""
    return datetime.now(tz=UTC)


def current_date() -> date:
    """Return the current date, in UTC."""
    return now().date()


def current_moment() -> str:
    """Return the current time as indexes write it: `2026-11-15T14:20:00Z`."""
    return f"{now():%Y-%m-%dT%H:%M:%SZ}"
