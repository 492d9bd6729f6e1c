"""The options of a smoke test."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from torchyard.model.values import Value
from torchyard.smoke.installation import Installation, Installer
from torchyard.smoke.known_failures import Known, load_known
from torchyard.smoke.suite import Level, Test, read_suite
from torchyard.smoke.surroundings import Environment

_HOSTILE_TOO = (Environment.CLEAN, Environment.HOSTILE)
_ALL = (Installer.UV, Installer.PIP)


class Request(Value, kw_only=True):
    """The options of a smoke test; installers are for wheels, other formats have only one each."""

    level: Level = Level.OPS
    environments: tuple[Environment, ...] = _HOSTILE_TOO
    installers: tuple[Installer, ...] = _ALL
    channels: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    """Indexes for requirements missing from a published wheel's index."""
    python: str = ""
    tests: tuple[Test, ...] = ()
    only: str = ""
    """The name of the only test to run; empty for all."""
    made: Installation | None = None
    """An environment in which another installer has installed the same package."""
    today: date
    """The date to compare with end dates of known failures."""
    known: tuple[Known, ...] = ()
    timeout: int | None = None
    """Seconds for each test, instead of its own limit."""


def smoke_request(  # noqa: PLR0913 - the options of `torchyard smoke`
    today: date,
    *,
    level: str = "ops",
    tests: str | Path | None = None,
    environment: str = "both",
    installer: str = "both",
    channels: Sequence[str] = (),
    indexes: Sequence[str] = (),
    python: str | Path | None = None,
    timeout: int | None = None,
) -> Request:
    """Return the tests to run on each package, and their environments."""
    folder = Path(tests) if tests else None
    return Request(
        level=Level(level),
        environments=_HOSTILE_TOO if environment == "both" else (Environment(environment),),
        installers=_ALL if installer == "both" else (Installer(installer),),
        channels=tuple(channels),
        indexes=tuple(indexes),
        python=str(python or ""),
        tests=read_suite(folder) if folder else (),
        today=today,
        known=load_known(folder),
        timeout=timeout,
    )
