"""Resolve the build environments of extensions to wheels with digests."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from torchyard.errors import ConfigError, HostError
from torchyard.model.tables import Tables
from torchyard.toolchain.index_wheels import NO_SOLUTION, IndexWheel, resolve_wheels

TORCH = "torch"
_MANYLINUX = re.compile(r"(manylinux_\d+_\d+)_(\w+)")


class LockTarget(NamedTuple):
    """The target of an environment: a Python version, and a platform by its wheel tag."""

    python: str
    platform_tag: str

    @property
    def uv_platform(self) -> str:
        """The platform as uv names it: `x86_64-manylinux_2_28`."""
        found = _manylinux(self.platform_tag)
        return f"{found[2]}-{found[1]}"


def lock_target(tables: Tables, platform: str, python: str) -> LockTarget:
    """Return the target for the environments of a platform and Python."""
    row = tables.pythons[python]
    if row.free_threaded:
        msg = f"uv can't resolve wheels for {python}: it takes it for Python {row.version}"
        raise ConfigError(msg, hint="remove the free-threaded Pythons from the matrix")
    return LockTarget(row.version, tables.platforms[platform].wheel_tag)


def _manylinux(tag: str) -> re.Match[str]:
    found = _MANYLINUX.fullmatch(tag)
    if found is None:
        msg = f"extensions are not built for `{tag}` yet"
        raise ConfigError(msg, hint="remove this platform from the matrix")
    return found


class LockedEnvironment(NamedTuple):
    """The wheels of an environment: their digests by file name, and versions by package name."""

    wheels: tuple[IndexWheel, ...]
    files: Mapping[str, str]
    versions: Mapping[str, str]


def resolve_environment(requirements: Sequence[str], target: LockTarget) -> LockedEnvironment:
    """Return the newest wheels that satisfy requirements, and all their dependencies."""
    wheels = resolve_wheels(requirements, target.python, target.uv_platform)
    for wheel in wheels:
        if not wheel.sha256:
            msg = f"the index has no SHA-256 of `{wheel.file}`"
            raise HostError(msg, hint="use an index that has them, as PyPI does")
    return LockedEnvironment(
        tuple(wheels),
        {wheel.file: wheel.sha256 for wheel in wheels},
        {wheel.name: wheel.version for wheel in wheels},
    )


def resolve_with_torch(
    requirements: Sequence[str], release: str, compute: str, target: LockTarget
) -> LockedEnvironment:
    """Return an environment with a torch of a release (`2.13`) for a compute platform.

    A torch whose local version is the compute platform's name precedes one without a local
    version, which may be for any compute platform.
    """
    others: list[str] = []
    while True:
        torch = ",".join([f"{TORCH}=={release}.*", *(f"!={version}" for version in others)])
        try:
            found = resolve_environment([*requirements, torch], target)
        except HostError as error:
            raise _no_torch(error, release, compute, target) from error
        version = found.versions[TORCH]
        if Version(version).local in (None, compute):
            return found
        others.append(version)  # for another compute platform


def _no_torch(error: HostError, release: str, compute: str, target: LockTarget) -> HostError:
    if NO_SOLUTION not in str(error) or error.reason:
        return error
    msg = f"no torch {release} for {compute} and Python {target.python} fits the project"
    reason = str(error).partition(NO_SOLUTION)[2]
    hint = "see uv's message, and the indexes in its settings (UV_INDEX, UV_FIND_LINKS)"
    return HostError(f"{msg}: no solution found{reason}", hint=hint)
