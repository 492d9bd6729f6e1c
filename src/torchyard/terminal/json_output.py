"""Print values and errors as JSON."""

import re

import msgspec

from torchyard.errors import TorchyardError
from torchyard.model.values import Reported

_CONTROLS = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)
"""DEL, control characters above ASCII, line separators, and changes of text direction."""


class ErrorLine(Reported, kw_only=True):
    """An error: what is wrong, where in a file, and what to do."""

    what: str
    hint: str | None
    file: str | None
    line: int | None
    column: int | None


class ErrorDocument(Reported, kw_only=True):
    """Why a command with --json failed before it printed anything."""

    exit_code: int
    reason: str
    errors: list[ErrorLine]


def error_document(error: TorchyardError) -> ErrorDocument:
    lines = []
    for what, span, hint in error.diagnostics:
        file, line, column, *_ = span or (None, None, None)
        lines.append(ErrorLine(what=what, hint=hint, file=file, line=line, column=column))
    return ErrorDocument(exit_code=error.exit_code, reason=error.reason, errors=lines)


def encode(value: object) -> bytes:
    """Encode a value for printing: for programs, but readable and safe on a terminal.

    JSON itself escapes the control characters of ASCII only.
    """
    data = msgspec.json.encode(value)
    if not data.isascii() or b"\x7f" in data:
        data = _CONTROLS.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), data)
    return msgspec.json.format(data, indent=2) + b"\n"
