"""What a test finds around it: an environment composed from nothing, or a hostile one."""

from enum import StrEnum
from pathlib import Path

from torchyard.checks.smoke.installation import Installation
from torchyard.checks.smoke.suite import Need
from torchyard.model.values import Value
from torchyard.toolchain.variables import SYSTEM_PATH


class Environment(StrEnum):
    """Whether everything is as it should be, or as bad as it was for somebody.

    `split` is hostile, too: for wheels whose libraries are in other wheels.
    """

    CLEAN = "clean"
    HOSTILE = "hostile"
    SPLIT = "split"


class Surroundings(Value, kw_only=True):
    """An installation, the variables around it, and the command that shuts a test in.

    `applied` and `missing` say what was done to it, and what could not be and why.
    """

    environment: Environment
    installation: Installation
    env: dict[str, str]
    variant: str = ""
    """What is there besides: `numpy 1.23.2`."""
    without: dict[Need, str] = {}
    """What could not be had here, and why."""
    wrapper: tuple[str, ...] = ()
    applied: dict[str, str] = {}
    missing: dict[str, str] = {}


def plain(
    installation: Installation, folder: Path, environment: Environment = Environment.CLEAN
) -> Surroundings:
    """The system's programs, a home of its own, and nothing of the caller's."""
    for name in ("home", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    env = {
        "PATH": f"{Path(installation.prefix, 'bin')}:{SYSTEM_PATH}",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
    }
    return Surroundings(environment=environment, installation=installation, env=env)
