"""Versions of toolkits, drivers and systems, compared number by number."""

import re


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: (580, 65, 6) of `580.65.06`."""
    return tuple(map(int, re.findall(r"\d+", version)))
