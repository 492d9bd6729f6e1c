"""The version of torchyard."""

__version__ = "0.1.0"

ON_PYPI = False
"""Whether PyPI has it. Once released, True: then `nox -s gen` makes docs install it from there."""
