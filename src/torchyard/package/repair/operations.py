"""The operations on an existing package, as values."""

from pathlib import Path

from torchyard.model.values import Value

EVERYWHERE = ("*",)


class SetRpath(Value, kw_only=True):
    """Set the rpaths of libraries; without a value, by the layout's policy.

    An explicit value keeps the library's kind: DT_RPATH or DT_RUNPATH.
    """

    value: str | None = None
    members: tuple[str, ...] = EVERYWHERE


class ReplaceNeeded(Value, kw_only=True):
    """Replace a needed library; remove it without a new name, add it without an old one."""

    old: str = ""
    new: str = ""
    members: tuple[str, ...] = EVERYWHERE


class Strip(Value, kw_only=True):
    """Strip debug information from libraries."""

    members: tuple[str, ...] = EVERYWHERE


class Bundle(Value, kw_only=True):
    """Bundle needed libraries in these directories that the package lacks."""

    folders: tuple[Path, ...]


class Retag(Value, kw_only=True):
    """Change the tags of a wheel; empty ones stay."""

    python: str = ""
    abi: str = ""
    platform: str = ""


class Reversion(Value, kw_only=True):
    """Set a new version, or only its local part, such as `cu130`; an empty one removes it."""

    version: str | None = None
    local: str | None = None


Relink = SetRpath | ReplaceNeeded | Strip | Bundle
Operation = Retag | Reversion | Relink
