"""The Pythons and platforms of wheels' tags."""

import re
from collections.abc import Sequence
from functools import cache

from packaging.tags import Tag, compatible_tags, cpython_tags

from torchyard.config.tables import load_tables

ANY = "any"
"""The platform tag for all platforms."""
_ANYWHERE = "anywhere"


def python_tags(python: str, platforms: Sequence[str]) -> list[Tag]:
    """Return the wheel tags that a Python such as `cp313t` supports, the best first."""
    version = (int(python[2]), int(python[3:].removesuffix("t")))
    interpreter = python.removesuffix("t")
    return [
        *cpython_tags(version, [python], platforms),
        *compatible_tags(version, interpreter, platforms),
    ]


def runs_on(python: str, tag: Tag) -> bool:
    """Return whether a Python such as `cp313t` supports a tag, on the tag's platform."""
    platform = tag.platform if tag.platform == ANY else _ANYWHERE
    return Tag(tag.interpreter, tag.abi, platform) in _somewhere(python)


@cache
def _somewhere(python: str) -> frozenset[Tag]:
    return frozenset(python_tags(python, [_ANYWHERE]))


def tag_platforms(tag: str) -> list[str]:
    """Return the platforms of a platform tag; the tag itself if it is unknown."""
    if tag == ANY:
        return [ANY]
    system, machine = _system(tag)
    machines = ("arm64", "x86_64") if machine == "universal2" else (machine,)
    return [_systems().get((system, machine), tag) for machine in machines]


@cache
def _systems() -> dict[tuple[str, str], str]:
    """Return platforms by the system and machine of a tag: `linux`, `x86_64` → `linux-x86_64`."""
    return {_system(row.wheel_tag): name for name, row in load_tables().platforms.items()}


def _system(tag: str) -> tuple[str, str]:
    match = re.fullmatch(r"(?:many)?(linux|macosx|win)(?:\d*(?:_\d+)*)_(\w+)", tag)
    return (match[1], match[2]) if match else (tag, "")
