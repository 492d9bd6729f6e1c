"""What a channel has to offer: the newest version of everything, and what it is for."""

from collections.abc import Iterable
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from torchyard.index.entry import Entry
from torchyard.model.values import Value


class Offer(Value, kw_only=True):
    """The newest version of a part in one variant, and the platforms and Pythons it is for."""

    version: str
    platforms: dict[str, tuple[str, ...]] = {}
    """`linux-x86_64` → `cp311`, `cp312`; no Pythons if none matters."""


def offers(entries: Iterable[Entry]) -> dict[str, Offer]:
    """For each variant, its newest version that nobody took back."""
    versions: dict[str, set[str]] = {}
    for variant, version in {(one.variant, one.version) for one in entries if one.yanked is None}:
        versions.setdefault(variant, set()).add(version)
    return {variant: Offer(version=_newest(found)) for variant, found in sorted(versions.items())}


def _newest(versions: Iterable[str]) -> str:
    """The newest version. Variants share all but the local part, so that is looked at last."""
    public: dict[str, list[str]] = {}
    for version in sorted(versions):
        public.setdefault(version.partition("+")[0], []).append(version)
    return max(public[max(public, key=age)], key=age)


@lru_cache(maxsize=10_000)
def age(version: str) -> tuple[bool, Version]:
    """What versions are ordered by; those that mean nothing are the oldest."""
    try:
        return True, Version(version)
    except InvalidVersion:
        return False, Version("0")
