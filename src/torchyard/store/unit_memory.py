"""Memory of a job's units in earlier builds, for any commit and version.

Results do not depend on it: without it, a build takes longer to find how many compilers fit.
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
"""Maximum bytes of a record; PyTorch's is thirty times smaller."""
_MOST = 1 << 16
"""Maximum number of units in the record of a job."""


def units_key_of(job: str) -> str:
    """Return the key of a job's record, given the job's identifier."""
    return units_key(hashlib.sha256(job_series(job).encode()).hexdigest())


def remembered_units(objects: Objects, job: str) -> dict[str, UnitUsage]:
    """Return the last usage of a job's units; empty if there is no usable record."""
    key = units_key_of(job)
    with suppress(TorchyardError, OSError):
        meta = objects.head(key)
        if meta is not None and meta.size <= _LARGEST and (data := objects.read(key)):
            return decode_units(data)
    return {}


def remember_units(objects: Objects, job: str, units: Mapping[str, UnitUsage]) -> None:
    """Record the usage of units, keep that of units not compiled now, and ignore failures."""
    if not units:
        return
    earlier = {
        name: used for name, used in remembered_units(objects, job).items() if name not in units
    }
    latest = dict([*earlier.items(), *units.items()][-_MOST:])
    with suppress(TorchyardError, OSError):
        objects.write(units_key_of(job), msgspec.json.encode(UnitsDocument(units=latest)))
