"""The current time in UTC, for allowances with an end date and for logs of channels."""

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
