"""The number of inputs that property tests try."""

from hypothesis import settings

_USUAL = 100
"""Hypothesis' default."""


def examples(number: int) -> int:
    """Return the number of inputs to try: `number`, or proportionally more at night."""
    return number * settings().max_examples // _USUAL
