"""The ABI classes of extensions: what one build fits more than one release of."""

from enum import StrEnum


class AbiClass(StrEnum):
    """What an extension fits more than one release of."""

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
