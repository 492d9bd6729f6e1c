"""How packages are to be tried."""

from datetime import date

from torchyard.checks.smoke.installation import Installer
from torchyard.checks.smoke.known_failures import Known
from torchyard.checks.smoke.suite import Level, Test
from torchyard.checks.smoke.surroundings import Environment
from torchyard.model.values import Value


class Request(Value, kw_only=True):
    """How packages are to be tried. Installers are for wheels; the others have only one each."""

    level: Level = Level.OPS
    environments: tuple[Environment, ...] = (Environment.CLEAN, Environment.HOSTILE)
    installers: tuple[Installer, ...] = (Installer.PIP, Installer.UV)
    channels: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    """Where published wheels find what their own index has not."""
    python: str = ""
    tests: tuple[Test, ...] = ()
    today: date
    """After which day some of what is known to fail fails again."""
    known: tuple[Known, ...] = ()
    timeout: int | None = None
    """Seconds for each test, in place of its own."""
