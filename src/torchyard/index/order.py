"""The order of versions and Pythons, newest last."""

import re
from functools import lru_cache

from packaging.version import InvalidVersion, Version


def age(version: str) -> tuple[bool, Version, tuple[tuple[int, str], ...], str]:
    """Where a version stands; those that differ in their local part are read only once."""
    public, _, local = version.partition("+")
    return (*_public_age(public), local)


@lru_cache(maxsize=10_000)
def _public_age(version: str) -> tuple[bool, Version, tuple[tuple[int, str], ...]]:
    """Where a version stands; one that Python does not know, by its numbers and words."""
    try:
        return True, Version(version), ()
    except InvalidVersion:
        words = re.findall(r"(\d+)|([A-Za-z]+)", version)
        return False, Version("0"), tuple((int(d) if d else -1, word) for d, word in words)


def python_order(python: str) -> tuple[int, str]:
    """`cp39` is older than `cp310`, and `cp313t` comes after `cp313`."""
    digits = re.sub(r"\D", "", python)
    return int(digits[1:] or 0), python
