"""The options of a smoke test."""

from datetime import date

from torchyard.checks.smoke.installation import Installation, Installer
from torchyard.checks.smoke.known_failures import Known
from torchyard.checks.smoke.suite import Level, Test
from torchyard.checks.smoke.surroundings import Environment
from torchyard.model.values import Value


class Request(Value, kw_only=True):
    """The options of a smoke test. Installers are for wheels; other formats have only one each."""

    level: Level = Level.OPS
    environments: tuple[Environment, ...] = (Environment.CLEAN, Environment.HOSTILE)
    installers: tuple[Installer, ...] = (Installer.UV, Installer.PIP)
    channels: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    """Indexes for requirements that a published wheel's own index does not have."""
    python: str = ""
    tests: tuple[Test, ...] = ()
    only: str = ""
    """The name of the one test to run; all if it is empty."""
    made: Installation | None = None
    """An environment in which another installer has put the same package."""
    today: date
    """The date that is compared with the end dates of known failures."""
    known: tuple[Known, ...] = ()
    timeout: int | None = None
    """Seconds for each test, overriding its own limit."""
