"""The settings for checking and testing packages."""

from typing import Literal

from torchyard.model.values import Value

Level = Literal["import", "ops", "full"]
"""How much of a package is tested; each level includes the one before."""


class Check(Value, kw_only=True):
    """The `[check]` table. A policy is a name, or a file whose text is in every fingerprint."""

    policy: str = "default"
    text: str = ""


class Smoke(Value, kw_only=True):
    """The `[smoke]` table. The texts of the project's own tests are in every fingerprint.

    So each job carries them, and a changed test runs the job again.
    """

    level: Level = "full"
    folder: str = ""
    tests: dict[str, str] = {}
    channels: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    """Addresses, with words in braces for values of the cell."""
