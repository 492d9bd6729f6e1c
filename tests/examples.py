"""How many inputs property tests try."""

from hypothesis import settings

_USUAL = 100
"""As many as Hypothesis tries if nothing else is said."""


def examples(number: int) -> int:
    """Return how many inputs to try: so many, or in proportion more at night."""
    return number * settings().max_examples // _USUAL
