"""What can be done to a package that is there already, as values."""

from pathlib import Path

from torchyard.model.values import Value

EVERYWHERE = ("*",)


class SetRpath(Value, kw_only=True):
    """Where libraries look for others; without a value, where the layout's policy says.

    A value of one's own is written as the kind that the library has: DT_RPATH or DT_RUNPATH.
    """

    value: str | None = None
    members: tuple[str, ...] = EVERYWHERE


class ReplaceNeeded(Value, kw_only=True):
    """Ask for another library; without a new name for none, and without an old one for one more."""

    old: str = ""
    new: str = ""
    members: tuple[str, ...] = EVERYWHERE


class Strip(Value, kw_only=True):
    """Take debug information out of libraries."""

    members: tuple[str, ...] = EVERYWHERE


class Bundle(Value, kw_only=True):
    """Bring needed libraries along that are in these directories and not in the package."""

    folders: tuple[Path, ...]


class Retag(Value, kw_only=True):
    """Other tags of a wheel; those that are empty stay."""

    python: str = ""
    abi: str = ""
    platform: str = ""


class Reversion(Value, kw_only=True):
    """A whole new version, or only another local part: `cu130`, or none if it is empty."""

    version: str | None = None
    local: str | None = None


Relink = SetRpath | ReplaceNeeded | Strip | Bundle
Operation = Retag | Reversion | Relink
