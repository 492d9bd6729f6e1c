"""The order of versions and Pythons, newest last."""

import re
from functools import lru_cache

from packaging.version import InvalidVersion, Version


def version_key(version: str) -> tuple[bool, Version, tuple[tuple[int, str], ...], str]:
    """Return the sort key of a version; its public part is parsed only once."""
    public, _, local = version.partition("+")
    return (*_public_age(public), local)


@lru_cache(maxsize=10_000)
def _public_age(version: str) -> tuple[bool, Version, tuple[tuple[int, str], ...]]:
    """Return the sort key of a public version; non-PEP 440 versions sort by numbers and words."""
    try:
        return True, Version(version), ()
    except InvalidVersion:
        words = re.findall(r"(\d+)|([A-Za-z]+)", version)
        return False, Version("0"), tuple((int(d) if d else -1, word) for d, word in words)


def python_key(python: str) -> tuple[int, str]:
    """Return the sort key of a Python: `cp39` before `cp310`, and `cp313t` after `cp313`."""
    digits = re.sub(r"\D", "", python)
    return int(digits[1:] or 0), python
