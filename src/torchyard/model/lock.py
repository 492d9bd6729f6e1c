"""The lock of a file: `torchyard.lock`, beside it."""

from typing import Literal

from torchyard.model.tables import Release
from torchyard.model.values import Value


class BuildLock(Value, kw_only=True):
    """The locked wheels of an extension's environments, and the image of the root.

    `environments` are the names of wheels, by the path of the job that uses them
    (`linux-x86_64/cpu-torch2.13/cp311`). `files` has the SHA-256 of each wheel, `sizes` the bytes
    where known. `releases` are rows for torch releases missing in the tables, read from the wheels
    of an index. `images` are digests (`sha256:…`), by the names in the file. `requires` are the
    requirements that the environments were resolved for, besides torch.
    """

    version: Literal[1] = 1
    requires: tuple[str, ...] = ()
    environments: dict[str, tuple[str, ...]] = {}
    files: dict[str, str] = {}
    sizes: dict[str, int] = {}
    releases: dict[str, Release] = {}
    images: dict[str, str] = {}

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
