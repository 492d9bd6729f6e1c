"""How bad a finding is, of a package, an index or a machine."""

from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is: errors make a check fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
