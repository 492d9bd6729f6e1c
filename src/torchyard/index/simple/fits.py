"""The platforms and Pythons of wheels, by the tags in their names."""

from collections.abc import Iterator

from torchyard.config.tables import load_tables
from torchyard.index.section import Fit
from torchyard.index.sort_keys import python_key
from torchyard.package.wheel.compatible_tags import tag_platforms
from torchyard.package.wheel.name import split_tags


def wheel_fits(file: str) -> Iterator[Fit]:
    """Yield what a wheel's tags are for. A platform that is in no table is named by its tag."""
    tags = split_tags(file)
    if len(tags) != len(("python", "abi", "platform")):
        return
    pythons, abis, platforms = (tag.split(".") for tag in tags)
    for tag in platforms:
        for platform in tag_platforms(tag):
            for python in pythons:
                yield from (Fit(platform, name) for name in _tag_pythons(python, abis))


def _tag_pythons(python: str, abis: list[str]) -> list[str]:
    if not python.startswith("cp"):
        return ["" if python.startswith("py") else python]
    if "abi3" not in abis:
        return [abi if abi.startswith(python) else python for abi in abis]
    oldest = python_key(python)
    rows = load_tables().pythons
    fitting = [name for name, row in rows.items() if not row.free_threaded]
    return [name for name in fitting if python_key(name) >= oldest]
