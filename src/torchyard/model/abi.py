"""The ABI classes of extensions: whether one build fits several releases."""

from enum import StrEnum


class AbiClass(StrEnum):
    """Whether one build fits several releases of Python, torch or both."""

    FULL = "full"
    """Neither: one build for each Python and each torch."""
    ABI3 = "abi3"
    """Several Pythons."""
    STABLE = "stable"
    """Several torch releases."""
    BOTH = "both"

    @property
    def fits_pythons(self) -> bool:
        """Whether one build serves several Pythons."""
        return self in (AbiClass.ABI3, AbiClass.BOTH)

    @property
    def fits_torches(self) -> bool:
        """Whether one build serves several torch releases."""
        return self in (AbiClass.STABLE, AbiClass.BOTH)
