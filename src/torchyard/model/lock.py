"""The lock of a file: `torchyard.lock`, beside it."""

import re
from typing import Literal

from torchyard.model.identifier import ANY_PYTHON
from torchyard.model.matrix import Matrix, values_of
from torchyard.model.tables import Release
from torchyard.model.toolchain import CondaToolchain
from torchyard.model.values import Value

BUILD, HOST = "build", "host"
"""The environments of a conda lock: programs, and libraries to link."""

CONDA = "conda"
"""The setting with conda environments: of the file, and with their lock of jobs."""

CORE_LOCK = "core"
"""The name of the lock of jobs without a Python of their own."""

_ENVIRONMENT = re.compile(r"  (\w+):")
_REQUESTED = re.compile(r"(?:^|, )(?:[^\s,]*::)?([\w.-]+)")
_PACKAGE = re.compile(r" +- conda: \S*/(\S+)-([^-\s]+)-[^-\s]+\.(?:conda|tar\.bz2)")


class BuildLock(Value, kw_only=True):
    """The locked wheels of an extension's environments, conda environments, and the root's image.

    `environments` are the names of wheels, by the path of the job that uses them
    (`linux-x86_64/cpu-torch2.13/cp311`). `files` has the SHA-256 of each wheel, `sizes` the bytes
    where known. `releases` are rows for torch releases missing in the tables, read from the wheels
    of an index. `images` are digests (`sha256:…`), by the names in the file. `requires` are the
    requirements that the environments were resolved for, besides torch. `conda` are texts of
    rattler's locks, by platform and Python (`linux-x86_64/cp312`); each is a file of its own.
    """

    version: Literal[1] = 1
    requires: tuple[str, ...] = ()
    environments: dict[str, tuple[str, ...]] = {}
    files: dict[str, str] = {}
    sizes: dict[str, int] = {}
    releases: dict[str, Release] = {}
    images: dict[str, str] = {}
    conda: dict[str, str] = {}

    def requirements(self, environment: str) -> tuple[str, ...]:
        """Return the wheels of an environment as pinned requirements; empty if it is not locked."""
        return tuple(
            f"{_pin(name)} --hash=sha256:{self.files[name]}"
            for name in self.environments.get(environment, ())
        )

    def versions(self, environment: str) -> dict[str, str]:
        """Return the packages of an environment; empty if it is not locked."""
        return dict(map(_release_of, self.environments.get(environment, ())))


def _release_of(wheel: str) -> tuple[str, str]:
    """Return the package and version of a wheel by its name."""
    name, version = wheel.split("-")[:2]
    return name.replace("_", "-"), version


def _pin(wheel: str) -> str:
    """Return the requirement for a wheel of this name: `torch==2.13.0+cpu`."""
    return "==".join(_release_of(wheel))


def conda_head(conda: CondaToolchain) -> str:
    """Return the first lines of a conda lock: what it was solved for."""
    asked = {"channels": conda.channels, BUILD: conda.build, HOST: conda.host}
    lines = (f"# {name}: {', '.join(words)}\n" for name, words in asked.items())
    return f"# Written by `torchyard lock`.\n{''.join(lines)}"


def conda_requests(lock: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the packages that were asked for, by environment."""
    lines = re.findall(rf"^# ({BUILD}|{HOST}): (.*)$", lock, re.MULTILINE)
    return {name: tuple(_REQUESTED.findall(text)) for name, text in lines}


def conda_packages(lock: str) -> dict[str, dict[str, str]]:
    """Return the versions of packages by name, for each environment of a conda lock."""
    found: dict[str, dict[str, str]] = {}
    own: dict[str, str] = {}
    for line in lock.partition("\npackages:")[0].splitlines():
        if named := _ENVIRONMENT.fullmatch(line):
            own = found.setdefault(named[1], {})
        elif package := _PACKAGE.fullmatch(line):
            own[package[1]] = package[2]
    return found


def conda_locks(matrix: Matrix) -> list[str]:
    """Return the names of the conda locks of a matrix: for each platform, that of cores first."""
    pythons = (tag for tag in values_of(matrix, "python") if tag != ANY_PYTHON)
    names = [CORE_LOCK, *pythons]
    return [f"{platform}/{name}" for platform in values_of(matrix, "platform") for name in names]
