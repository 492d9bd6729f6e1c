"""Resolves the build environments of extensions to wheels, with their digests, by uv.

Only metadata is read: nothing is installed, and no code of a package runs.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import unquote

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from torchyard.errors import ConfigError, HostError
from torchyard.host.installer_settings import uv_environment
from torchyard.host.process import capture, own_program

TORCH = "torch"
_RUNTIMES = ("cuda-toolkit", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")
"""The packages whose version is that of the CUDA which a torch was built with."""
_MANYLINUX = re.compile(r"(manylinux_\d+_\d+)_(\w+)")


class LockTarget(NamedTuple):
    """What an environment is for: a Python version, and a platform by its wheel tag."""

    python: str
    platform_tag: str

    @property
    def uv_platform(self) -> str:
        """The platform as uv names it: `x86_64-manylinux_2_28`."""
        found = _MANYLINUX.fullmatch(self.platform_tag)
        if found is None:
            msg = f"extensions are not built for `{self.platform_tag}` yet"
            raise ConfigError(msg, hint="take this platform out of the matrix")
        return f"{found[2]}-{found[1]}"


class LockedEnvironment(NamedTuple):
    """The wheels of an environment: their digests by file name, and versions by package name."""

    files: Mapping[str, str]
    versions: Mapping[str, str]


def resolve_environment(requirements: Sequence[str], target: LockTarget) -> LockedEnvironment:
    """Return the newest wheels that satisfy requirements, and all that they need."""
    with TemporaryDirectory() as name:
        asked, locked = Path(name, "requirements.txt"), Path(name, "pylock.toml")
        asked.write_text("".join(f"{line}\n" for line in requirements), encoding="utf-8")
        words = ["pip", "compile", "--quiet", "--only-binary", ":all:", "--no-sources"]
        words += ["--python-version", target.python, "--python-platform", target.uv_platform]
        words += ["--format", "pylock.toml", "--output-file", str(locked), str(asked)]
        capture([own_program("uv"), *words], cwd=Path(name), env=uv_environment())
        return read_pylock(locked.read_text(encoding="utf-8"))


def read_pylock(text: str) -> LockedEnvironment:
    """Return the wheels in a lock file of PEP 751 that was written for one environment."""
    files: dict[str, str] = {}
    versions: dict[str, str] = {}
    for package in tomllib.loads(text).get("packages", ()):
        wheels = {_file_name(wheel): wheel["hashes"] for wheel in package.get("wheels", ())}
        if not wheels or "version" not in package:
            msg = f"`{package['name']}` has no wheel that could be pinned"
            raise HostError(msg, hint="build requirements have to be wheels of an index")
        try:
            chosen = max(wheels, key=_build_number)
        except ValueError as error:
            msg = f"the index has a file for `{package['name']}` that is no wheel: {error}"
            raise HostError(msg, hint="look at the indexes in uv's settings") from error
        if "sha256" not in wheels[chosen]:
            msg = f"the index has no SHA-256 of `{chosen}`"
            raise HostError(msg, hint="use an index that has them, as PyPI does")
        files[chosen] = wheels[chosen]["sha256"]
        versions[package["name"]] = package["version"]
    return LockedEnvironment(files, versions)


def _file_name(wheel: Mapping[str, str]) -> str:
    place = wheel.get("name") or wheel.get("url") or wheel.get("path") or ""
    return unquote(place.rsplit("/", 1)[-1])


def _build_number(file_name: str) -> tuple[int, str] | tuple[()]:
    return parse_wheel_filename(file_name)[2]


def resolve_with_torch(
    requirements: Sequence[str], release: str, compute: str, toolkit: str, target: LockTarget
) -> LockedEnvironment:
    """Return an environment with a torch of a release (`2.13`) for a compute platform.

    A torch whose local version is the compute platform's name is taken before one without: that
    must have been built with the version of the `toolkit`, or with any if there is none.
    """
    others: list[str] = []
    while True:
        torch = ",".join([f"{TORCH}=={release}.*", *(f"!={version}" for version in others)])
        try:
            found = resolve_environment([*requirements, torch], target)
        except HostError as error:
            raise _no_torch(error, release, compute, target) from error
        version = found.versions[TORCH]
        if Version(version).local not in (None, compute):
            others.append(version)  # made for another compute platform
            continue
        if Version(version).local is None and toolkit:
            _check_toolkit(found, toolkit, compute)
        return found


def brings_cuda(environment: LockedEnvironment) -> bool:
    """Return whether the torch of an environment was built with CUDA."""
    return any(name in environment.versions for name in _RUNTIMES)


def _check_toolkit(found: LockedEnvironment, toolkit: str, compute: str) -> None:
    version = next((found.versions[name] for name in _RUNTIMES if name in found.versions), None)
    if version is not None and f"{version}.".startswith(f"{toolkit}."):
        return
    torch = found.versions[TORCH]
    has = f"CUDA {'.'.join(version.split('.')[:2])}" if version else "no CUDA"
    msg = f"torch {torch} of the index was built with {has}, and not for {compute}"
    hint = "name the compute platform that it has, or an index with the other one in uv's settings"
    raise HostError(msg, hint=hint)


def _no_torch(error: HostError, release: str, compute: str, target: LockTarget) -> HostError:
    if "No solution found" not in str(error):
        return error
    msg = f"no torch {release} for {compute} and Python {target.python} goes with the project"
    said = str(error).partition("No solution found")[2]
    hint = "look at what uv says, and at the indexes in its settings (UV_INDEX, UV_FIND_LINKS)"
    return HostError(f"{msg}: no solution found{said}", hint=hint)
