"""A wheel's own metadata, read without the rest of the wheel."""

from pathlib import Path
from typing import NamedTuple

import deflate

from torchyard.package.contents import FaultKind
from torchyard.package.limits import LIMITS
from torchyard.package.zip.directory import read_directory, reader_of
from torchyard.package.zip.inflate import BadDataError, whole

_METADATA = ".dist-info/METADATA"


class WheelAbout(NamedTuple):
    """The text of METADATA if readable, and why the wheel is incomplete."""

    metadata: bytes | None
    fault: str = ""


def read_about(path: Path) -> WheelAbout:
    """Read the directory of a wheel, and its METADATA."""
    with path.open("rb") as file:
        directory = read_directory(file)
        for fault in directory.faults:
            if fault.kind is FaultKind.STRUCTURE:
                return WheelAbout(None, fault.what)
        named = [
            entry
            for entry in directory.entries
            if entry.name.endswith(_METADATA) and entry.name.count("/") == 1
        ]
        if len(named) != 1 or not named[0].sound or named[0].size > LIMITS.text:
            return WheelAbout(None)
        try:
            text = bytes(whole(reader_of(file), named[0]))
        except BadDataError:
            return WheelAbout(None, "METADATA can't be unpacked")
    if len(text) != named[0].size or deflate.crc32(text) != named[0].crc:
        return WheelAbout(None, "METADATA does not match its checksum")
    return WheelAbout(text)
