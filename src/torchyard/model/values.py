"""Words and bases that the other models share."""

from typing import NamedTuple, dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of every model: immutable, and nothing unknown is let in.

    Defaults are not written out, so a new optional field changes no old document.
    """


class Origin(NamedTuple):
    """Where a value came from: a line of the file, the command line, a table, or a default."""

    kind: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.line}" if self.line else self.kind


DEFAULT = Origin("default")
COMMAND_LINE = Origin("command line")
