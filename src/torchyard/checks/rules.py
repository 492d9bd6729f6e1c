"""All rules: importing their modules is what registers them. A new module goes into this list."""

from torchyard.checks import archive, label, metadata, paths, record
from torchyard.checks.rule import RULES

__all__ = ["RULES", "archive", "label", "metadata", "paths", "record"]
