"""The lock of a file: `torchyard.lock`, beside it."""

from typing import Literal

from torchyard.model.tables import Release
from torchyard.model.values import Value


class BuildLock(Value, kw_only=True):
    """What builds use: wheels in the environments of an extension, and the image of the root.

    `environments` are the names of wheels, by the path of the job that uses them
    (`linux-x86_64/cpu-torch2.13/cp311`). `files` has the SHA-256 of each of them, `sizes` the bytes
    of those where they are known. `releases` are rows for torch releases that the tables do not
    have, read from the wheels of an index. `images` are digests (`sha256:…`), by the names that the
    file has. `requires` is what the environments were resolved for, beside torch.
    """

    version: Literal[1] = 1
    requires: tuple[str, ...] = ()
    environments: dict[str, tuple[str, ...]] = {}
    files: dict[str, str] = {}
    sizes: dict[str, int] = {}
    releases: dict[str, Release] = {}
    images: dict[str, str] = {}

    def requirements(self, environment: str) -> tuple[str, ...]:
        """Return the wheels of an environment as pinned requirements; none if it is not locked."""
        return tuple(
            f"{_pin(name)} --hash=sha256:{self.files[name]}"
            for name in self.environments.get(environment, ())
        )

    def versions(self, environment: str) -> dict[str, str]:
        """Return the packages of an environment; none if it is not locked."""
        return dict(map(_release_of, self.environments.get(environment, ())))


def _release_of(wheel: str) -> tuple[str, str]:
    """Return the package and version of a wheel by its name."""
    name, version = wheel.split("-")[:2]
    return name.replace("_", "-"), version


def _pin(wheel: str) -> str:
    """Return the requirement for a wheel of this name: `torch==2.13.0+cpu`."""
    return "==".join(_release_of(wheel))
