"""The environment of a test: clean, or hostile."""

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
    """Whether the environment is clean or hostile.

    `split` is also hostile: for wheels whose libraries are in other wheels.
    """

    CLEAN = "clean"
    HOSTILE = "hostile"
    SPLIT = "split"


class Surroundings(Value, kw_only=True):
    """An installation, its environment variables, and the sandbox command for tests.

    `applied` are the created conditions; `missing` the impossible ones, with reasons.
    """

    environment: Environment
    installation: Installation
    env: dict[str, str]
    variant: str = ""
    """Additionally installed packages: `numpy 1.23.2`."""
    without: dict[Need, str] = {}
    """Unmet needs, with reasons."""
    wrapper: tuple[str, ...] = ()
    applied: dict[str, str] = {}
    missing: dict[str, str] = {}


def plain(
    installation: Installation, folder: Path, environment: Environment = Environment.CLEAN
) -> Surroundings:
    """Return surroundings with the system's programs and a fresh home, without the caller's."""
    for name in ("home", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    env = {
        "PATH": f"{Path(installation.prefix, 'bin')}:{SYSTEM_PATH}",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "USER": "smoke",  # torch.compile asks for the user's name, which a root may lack
    }
    return Surroundings(environment=environment, installation=installation, env=env)
