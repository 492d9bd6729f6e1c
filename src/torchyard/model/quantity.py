"""Quantities with a unit: `64 GB`, `90 min`."""

import re
from collections.abc import Sequence

_SPELLED = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*([A-Za-z]+)")
_BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
_MOMENTS = 10
_PRECISE_SECONDS = 10
"""Durations below this many seconds are shown with tenths."""
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


def parse_size(text: str) -> int:
    """Return the bytes of `64 GB`."""
    return _parse(text, _BYTES)


def parse_duration(text: str) -> int:
    """Return the seconds of `90 min`."""
    return _parse(text, _SECONDS)


def _parse(text: str, units: dict[str, int]) -> int:
    spelled = _SPELLED.fullmatch(text.strip())
    if spelled is None or spelled[2] not in units:
        names = ", ".join(units)
        msg = f"`{text}` is not a number with one of the units {names}"
        raise ValueError(msg)
    return round(float(spelled[1]) * units[spelled[2]])


def show_count(number: int, noun: str) -> str:
    """Return `1 package`, `2 packages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return the first names, and the number of further ones."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more


def show_size(amount: int) -> str:
    for unit, factor in reversed(_BYTES.items()):
        if amount >= factor:
            return f"{amount / factor:.3g} {unit}"
    return f"{amount / 1000:.3g} kB" if amount >= 1000 else f"{amount} B"  # noqa: PLR2004


def show_duration(seconds: float) -> str:
    """Return a duration as `1 h 30 min`; only short ones have tenths of a second."""
    if seconds < _MOMENTS and seconds != round(seconds):
        return f"{seconds:.1f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min" if minutes else f"{seconds:.0f} s"


def show_seconds(seconds: float) -> str:
    """Return a duration in seconds only, for comparisons: `133 s`, or `3.2 s`."""
    return f"{seconds:.1f} s" if seconds < _PRECISE_SECONDS else f"{seconds:,.0f} s"
