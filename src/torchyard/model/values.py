"""Base classes of the models, and origins of values."""

from collections.abc import Callable
from typing import Annotated, dataclass_transform

import msgspec

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not JSON of a type, not UTF-8, or nested too deeply."""

Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
"""A sha256 in hexadecimal digits, enforced when documents are read: it may become a file's name."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of every model: immutable, without unknown fields.

    Defaults are not written out, so a new optional field changes no old document.
    """


class Reported(Value, omit_defaults=False, forbid_unknown_fields=False):
    """A value in reports: every key is always present, and unknown keys are accepted."""


class Origin:
    """Where a value came from: a line of the file, the command line, a table, or a default.

    Every value has an origin but few are shown, so the line is computed on demand.
    """

    __slots__ = ("_find_line", "kind")

    def __init__(self, kind: str, find_line: Callable[[], int] | None = None) -> None:
        self.kind = kind
        self._find_line = find_line

    @property
    def line(self) -> int:
        """The line, starting at 1; 0 if there is none."""
        return self._find_line() if self._find_line else 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.line}" if self.line else self.kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return f"<Origin {self}>"


DEFAULT = Origin("default")
COMMAND_LINE = Origin("command line")
