"""The platforms and Pythons of wheels, by the tags in their names."""

import re
from collections.abc import Iterator
from functools import cache

from torchyard.config.tables import load_tables
from torchyard.index.order import python_order
from torchyard.index.section import ANY_PLATFORM, Fit
from torchyard.package.wheel.name import split_tags


@cache
def _systems() -> dict[tuple[str, str], str]:
    """Return platforms by the system and machine of a tag: `linux`, `x86_64` → `linux-x86_64`."""
    return {_system(row.wheel_tag): name for name, row in load_tables().platforms.items()}


def _system(tag: str) -> tuple[str, str]:
    match = re.fullmatch(r"(?:many)?(linux|macosx|win)(?:\d*(?:_\d+)*)_(\w+)", tag)
    return (match[1], match[2]) if match else (tag, "")


def wheel_fits(file: str) -> Iterator[Fit]:
    """Yield what a wheel's tags are for. A platform that is in no table is named by its tag."""
    tags = split_tags(file)
    if len(tags) != len(("python", "abi", "platform")):
        return
    pythons, abis, platforms = (tag.split(".") for tag in tags)
    for tag in platforms:
        system, machine = _system(tag)
        for part in ("arm64", "x86_64") if machine == "universal2" else (machine,):
            platform = ANY_PLATFORM if tag == "any" else _systems().get((system, part), tag)
            for python in pythons:
                yield from (Fit(platform, name) for name in _tag_pythons(python, abis))


def _tag_pythons(python: str, abis: list[str]) -> list[str]:
    if not python.startswith("cp"):
        return ["" if python.startswith("py") else python]
    if "abi3" not in abis:
        return [abi if abi.startswith(python) else python for abi in abis]
    oldest = python_order(python)
    rows = load_tables().pythons
    fitting = [name for name, row in rows.items() if not row.free_threaded]
    return [name for name in fitting if python_order(name) >= oldest]
