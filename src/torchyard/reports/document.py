"""What `--json` prints. The schemas under `data/schemas/` are generated from these classes."""

import re
from typing import dataclass_transform

import msgspec

from torchyard.errors import TorchyardError

_CONTROLS = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)
"""DEL, the control characters above ASCII, separators of lines, and changes of direction."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class JsonDocument(msgspec.Struct, frozen=True):
    """The base of all reports: every key is always there."""


class ErrorLine(JsonDocument, kw_only=True):
    """One thing that is wrong, where in a file, and what to do."""

    what: str
    hint: str | None
    file: str | None
    line: int | None
    column: int | None


class ErrorDocument(JsonDocument, kw_only=True):
    """Why a command with --json failed, if it has printed nothing else."""

    exit_code: int
    reason: str
    errors: list[ErrorLine]


def error_document(error: TorchyardError) -> ErrorDocument:
    lines = []
    for what, span, hint in error.diagnostics:
        file, line, column, *_ = span or (None, None, None)
        lines.append(ErrorLine(what=what, hint=hint, file=file, line=line, column=column))
    return ErrorDocument(exit_code=error.exit_code, reason=error.reason, errors=lines)


def encode(document: msgspec.Struct) -> bytes:
    """Write a report the way it is printed: for machines first, but readable, also on a terminal.

    JSON itself escapes the control characters of ASCII only.
    """
    data = msgspec.json.encode(document)
    if not data.isascii() or b"\x7f" in data:
        data = _CONTROLS.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), data)
    return msgspec.json.format(data, indent=2) + b"\n"
