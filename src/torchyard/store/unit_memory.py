"""What the units of a job took in earlier builds of it, whatever its commit and version.

Nothing depends on it: without it, a build is slower to find out how many compilers fit into memory.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from torchyard.errors import TorchyardError
from torchyard.model.identifier import job_series
from torchyard.model.unit_usage import UnitsDocument, UnitUsage, decode_units
from torchyard.store.keys import units_key
from torchyard.store.objects import Objects

_LARGEST = 1 << 25
"""Bytes of a record that is read; that of PyTorch has a thirtieth."""
_MOST = 1 << 16
"""Units that are remembered of a job."""


def units_key_of(job: str) -> str:
    """Return the key under which units of a job are remembered, given its identifier."""
    return units_key(hashlib.sha256(job_series(job).encode()).hexdigest())


def remembered_units(objects: Objects, job: str) -> dict[str, UnitUsage]:
    """Return what the units of a job took last; none, if there is no record that can be used."""
    key = units_key_of(job)
    with suppress(TorchyardError, OSError):
        meta = objects.head(key)
        if meta is not None and meta.size <= _LARGEST and (data := objects.read(key)):
            return decode_units(data)
    return {}


def remember_units(objects: Objects, job: str, units: Mapping[str, UnitUsage]) -> None:
    """Remember what units took; units not compiled this time keep their record.

    That this fails harms nothing.
    """
    if not units:
        return
    earlier = {
        name: used for name, used in remembered_units(objects, job).items() if name not in units
    }
    latest = dict([*earlier.items(), *units.items()][-_MOST:])
    with suppress(TorchyardError, OSError):
        objects.write(units_key_of(job), msgspec.json.encode(UnitsDocument(units=latest)))
