"""All rules: importing their modules is what registers them. A new module goes into this list."""

from torchyard.checks import (
    archive,
    compute,
    label,
    linking,
    metadata,
    paths,
    python_symbols,
    record,
    rpaths,
    symbols,
)
from torchyard.checks.rule import RULES

__all__ = [
    "RULES",
    "archive",
    "compute",
    "label",
    "linking",
    "metadata",
    "paths",
    "python_symbols",
    "record",
    "rpaths",
    "symbols",
]
