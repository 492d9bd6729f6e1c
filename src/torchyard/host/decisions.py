"""Decisions that `-v` shows. Reporting one costs nothing unless there is a listener."""

import sys

DECIDED = "torchyard.decided"
"""The audit event (PEP 578) of a decision; its value is a line of text."""


def decided(text: str) -> None:
    """Report a decision: what was chosen or found, and for what."""
    sys.audit(DECIDED, text)
