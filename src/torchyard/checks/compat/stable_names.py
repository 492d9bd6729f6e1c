"""The functions of two stable ABIs, each with the release that added it: Python's and torch's."""

import re
from functools import cache

from torchyard.errors import DataError
from torchyard.host.files import read_data

Release = tuple[int, int]
"""A minor version, such as 3.12 or 2.14."""

SHIMS = "torch_shims.txt"
_LINE = re.compile(r"(\w+) (\d+)\.(\d+)")


@cache
def stable_abi() -> dict[str, Release]:
    """Return the names of Python's stable ABI."""
    return _names("stable_abi.txt")


@cache
def torch_shims() -> dict[str, Release]:
    """Return torch's C functions; those of the oldest known release may be older."""
    return _names(SHIMS)


def torch_releases() -> list[Release]:
    """Return all torch releases in the table."""
    return sorted(set(torch_shims().values()))


def newest_release() -> Release:
    """Return the newest torch release in the table."""
    return torch_releases()[-1]


def parse_release(text: str) -> Release:
    """Return the minor version in `3.12`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def show_release(release: Release) -> str:
    """Return a release as text: `3.12`."""
    return ".".join(map(str, release))


def _names(file: str) -> dict[str, Release]:
    found: dict[str, Release] = {}
    for line in read_data(file).splitlines():
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            msg = f"the table data/{file} has a line without a name and version: `{line}`"
            raise DataError(msg)
        found[match[1]] = int(match[2]), int(match[3])
    return found
