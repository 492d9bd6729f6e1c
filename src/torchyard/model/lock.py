"""The lock of an extension's build environments: `torchyard.lock`, beside the file."""

from typing import Literal

from torchyard.model.values import Value


class BuildLock(Value, kw_only=True):
    """What each environment of an extension consists of.

    `environments` are the names of wheels, by the path of the job that uses them
    (`linux-x86_64/cpu-torch2.13/cp311`), and `files` has the SHA-256 of each of them.
    """

    version: Literal[1] = 1
    environments: dict[str, tuple[str, ...]] = {}
    files: dict[str, str] = {}

    def requirements(self, environment: str) -> tuple[str, ...]:
        """Return the wheels of an environment as pinned requirements; none if it is not locked."""
        return tuple(
            f"{_pin(name)} --hash=sha256:{self.files[name]}"
            for name in self.environments.get(environment, ())
        )


def _pin(wheel: str) -> str:
    """Return the requirement for a wheel of this name: `torch==2.13.0+cpu`."""
    name, version = wheel.split("-")[:2]
    return f"{name.replace('_', '-')}=={version}"
