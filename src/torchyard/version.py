"""The version of torchyard."""

__version__ = "0.1.0"
