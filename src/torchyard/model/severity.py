"""The severity of findings in packages, indexes and machines."""

from enum import StrEnum


class Severity(StrEnum):
    """The severity of a finding: errors make a check fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
