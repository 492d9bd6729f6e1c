"""Decisions that `-v` shows. Telling of one costs nothing unless something listens."""

import sys

DECIDED = "torchyard.decided"
"""The audit event (PEP 578) of a decision; its value is a line of text."""


def decided(text: str) -> None:
    """Tell of a decision: what was chosen or found, and for what."""
    sys.audit(DECIDED, text)
