"""The record of a conda package in a channel's index, as far as it is needed to choose one."""

import msgspec

from torchyard.index.entry import Entry


class CondaRecord(msgspec.Struct):
    """The fields of a package's record that are needed to choose a package."""

    name: str = ""
    build: str = ""
    build_number: int = 0
    depends: list[str] = []


_RECORD = msgspec.json.Decoder(CondaRecord | None)


def conda_record(entry: Entry) -> CondaRecord:
    return _RECORD.decode(entry.record) or CondaRecord()
