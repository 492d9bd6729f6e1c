"""What `--json` prints. The schemas under `data/schemas/` are generated from these classes."""

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class JsonDocument(msgspec.Struct, frozen=True):
    """The base of all reports: every key is always there."""


def encode(document: msgspec.Struct) -> bytes:
    """Write a report the way it is printed: for machines first, but readable."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
