"""Times that are compared with one another, in seconds."""

_PRECISE = 10
"""Seconds below which tenths are shown."""


def show_seconds(seconds: float) -> str:
    """Return `133 s`, or `3.2 s`."""
    return f"{seconds:.1f} s" if seconds < _PRECISE else f"{seconds:,.0f} s"
