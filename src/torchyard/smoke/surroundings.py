"""The environment of a test: composed from scratch, or hostile."""

from enum import StrEnum
from pathlib import Path

from torchyard.model.values import Value
from torchyard.smoke.installation import Installation
from torchyard.smoke.suite import Need
from torchyard.toolchain.variables import SYSTEM_PATH

NO_SANDBOX = (
    "tests run code of the packages with your rights, in no sandbox: "
    "try packages that you do not trust on a machine that has nothing to steal"
)


class Environment(StrEnum):
    """Whether the environment is in order or hostile.

    `split` is hostile as well: for wheels whose libraries are in other wheels.
    """

    CLEAN = "clean"
    HOSTILE = "hostile"
    SPLIT = "split"


class Surroundings(Value, kw_only=True):
    """An installation, its environment variables, and the sandbox command for tests.

    `applied` are the conditions that were created; `missing` those that could not be, and why.
    """

    environment: Environment
    installation: Installation
    env: dict[str, str]
    variant: str = ""
    """What else is installed: `numpy 1.23.2`."""
    without: dict[Need, str] = {}
    """Needs that could not be met here, and why."""
    wrapper: tuple[str, ...] = ()
    applied: dict[str, str] = {}
    missing: dict[str, str] = {}


def plain(
    installation: Installation, folder: Path, environment: Environment = Environment.CLEAN
) -> Surroundings:
    """Return surroundings with the system's programs and a fresh home; nothing is the caller's."""
    for name in ("home", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    env = {
        "PATH": f"{Path(installation.prefix, 'bin')}:{SYSTEM_PATH}",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "USER": "smoke",  # a root may not know the user's name, and torch.compile asks for it
    }
    return Surroundings(environment=environment, installation=installation, env=env)
