"""What the file says of checking packages and of trying them."""

from typing import Literal

from torchyard.model.values import Value

Level = Literal["import", "ops", "full"]
"""How much of a package is tried; each level has all of the one before."""


class Check(Value, kw_only=True):
    """One `[check]` table. A policy is a name, or a file: then its text is in every fingerprint."""

    policy: str = "default"
    text: str = ""


class Smoke(Value, kw_only=True):
    """One `[smoke]` table. The texts of the project's own tests are in every fingerprint.

    So they go wherever a job goes, and a job is run again when one of them has changed.
    """

    level: Level = "full"
    folder: str = ""
    tests: dict[str, str] = {}
    channels: tuple[str, ...] = ()
