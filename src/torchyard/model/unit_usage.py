"""Memory and time of a build's units, to predict the next build of the same job."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from torchyard.model.values import UNDECODABLE, Reported

UNITS_FILE = ".torchyard_units.json"
"""The name of the file with the memory of units, beside ninja's log."""


class UnitUsage(Reported, kw_only=True):
    """The peak memory of a unit's compiler in bytes, and its CPU seconds."""

    memory: Annotated[int, Meta(ge=0, lt=1 << 62)]
    cpu: Annotated[float, Meta(ge=0, lt=1e9)]

    def joined(self, other: "UnitUsage") -> "UnitUsage":
        """Return the maximum of each."""
        return UnitUsage(memory=max(self.memory, other.memory), cpu=max(self.cpu, other.cpu))


class UnitsDocument(Reported, kw_only=True):
    """The usage of units, by output file as in the command."""

    version: Literal[1] = 1
    units: dict[str, UnitUsage] = {}


def decode_units(data: bytes) -> dict[str, UnitUsage]:
    """Return the units of an encoded document; empty if it can't be decoded."""
    try:
        return msgspec.json.decode(data, type=UnitsDocument).units
    except UNDECODABLE:
        return {}


def join_units(
    first: Mapping[str, UnitUsage], other: Mapping[str, UnitUsage]
) -> dict[str, UnitUsage]:
    """Return the units of both, with the maximum of each number."""
    both = {name: used.joined(first[name]) for name, used in other.items() if name in first}
    return {**first, **other, **both}
