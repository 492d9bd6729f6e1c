"""The record of a conda package in a channel's index, as far as it is needed to choose one."""

import msgspec

from torchyard.index.entry import NOT_PATCHED, Entry
from torchyard.model.canonical import canonical_json


class CondaRecord(msgspec.Struct):
    """The fields of a package's record that are needed to choose a package."""

    name: str = ""
    build: str = ""
    build_number: int = 0
    depends: list[str] = []
    constrains: list[str] = []


_RECORD = msgspec.json.Decoder(CondaRecord | None)
_FIELDS = msgspec.json.Decoder(dict[str, object])


def conda_record(entry: Entry) -> CondaRecord:
    """Return the corrected record of a package."""
    return _RECORD.decode(listed_record(entry)) or CondaRecord()


def listed_record(entry: Entry) -> msgspec.Raw:
    """Return the record of a package as an index lists it: with corrections."""
    if entry.patch == NOT_PATCHED:
        return entry.record
    fields = _FIELDS.decode(entry.record) | _FIELDS.decode(entry.patch)
    known = {key: value for key, value in fields.items() if value is not None}
    return msgspec.Raw(canonical_json(known))
