"""Wheels in the caller's package index, found by uv with the caller's settings.

Only metadata is read: nothing is installed, and no code of a package runs.
"""

import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.utils import parse_wheel_filename

from torchyard.errors import ConfigError, HostError
from torchyard.host.fetcher import Fetcher
from torchyard.model.requirement import is_plain_requirement
from torchyard.model.values import Value
from torchyard.toolchain.pypi import call_uv

_NEWEST_GLIBC = "manylinux_2_40"
_COMPILE = ("pip", "compile", "--quiet", "--only-binary", ":all:", "--no-header", "--no-sources")
NO_SOLUTION = "No solution found"


class IndexWheel(Value, kw_only=True):
    """A wheel in an index."""

    name: str
    file: str
    version: str
    url: str
    sha256: str = ""
    size: int | None = None


class _Row(Value, kw_only=True, forbid_unknown_fields=False):
    url: str = ""
    path: str = ""
    size: int | None = None
    hashes: dict[str, str] = {}


class _Package(Value, kw_only=True, forbid_unknown_fields=False):
    name: str
    version: str = ""
    wheels: tuple[_Row, ...] = ()


class _Lock(Value, kw_only=True, forbid_unknown_fields=False):
    packages: tuple[_Package, ...] = ()


def find_wheel(requirement: str, python: str, machine: str) -> IndexWheel | None:
    """Return the wheel of the newest version that a requirement admits, or None.

    Args:
        requirement: Such as `torch==2.14.*`.
        python: The version of Python that it is for, such as 3.12.
        machine: Such as `x86_64`, with Linux and any glibc.
    """
    platform = f"{machine}-{_NEWEST_GLIBC}"
    try:
        found = resolve_wheels([requirement], python, platform, alone=True)
    except HostError as error:
        if NO_SOLUTION in str(error) and not error.reason:
            return None
        raise
    return found[0] if found else None


def release_wheels(requirement: str, python: str) -> list[IndexWheel]:
    """Return all wheels of a release, for any platform, and for this Python or newer."""
    with TemporaryDirectory(prefix="torchyard-") as folder:
        where = ["--no-deps", "--universal", "--python-version", python]
        lock = tomllib.loads(_compile([requirement], where, Path(folder)))
        (package,) = msgspec.convert(lock, _Lock).packages
        return [_wheel(row, package, folder) for row in package.wheels]


def resolve_wheels(
    requirements: Sequence[str], python: str, platform: str, *, alone: bool = False
) -> list[IndexWheel]:
    """Return the newest wheels that satisfy requirements; unless `alone`, with dependencies.

    The platform is named as uv does: `x86_64-manylinux_2_28`.
    """
    with TemporaryDirectory(prefix="torchyard-") as folder:
        where = ["--python-version", python, "--python-platform", platform]
        words = ["--no-deps", *where] if alone else where
        return read_pylock(_compile(requirements, words, Path(folder)), folder)


def _compile(requirements: Sequence[str], words: Sequence[str], folder: Path) -> str:
    """Return uv's lock file for requirements; `folder` is for its files."""
    for line in requirements:
        if not is_plain_requirement(line):  # uv would read it as an option, or run its code
            msg = f"`{line}` is not a requirement of a package in an index"
            raise ConfigError(msg, hint="write it as in `numpy>=2` (PEP 508)")
    request, lock = folder / "requirements.in", folder / "pylock.toml"
    request.write_text("".join(f"{line}\n" for line in requirements), encoding="utf-8")
    call_uv([*_COMPILE, *words, "--format", "pylock.toml", str(request), "-o", str(lock)])
    return lock.read_text(encoding="utf-8")


def read_pylock(text: str, folder: str) -> list[IndexWheel]:
    """Return the wheels in a lock file (PEP 751) for one environment."""
    found = []
    for package in msgspec.convert(tomllib.loads(text), _Lock).packages:
        wheels = [_wheel(row, package, folder) for row in package.wheels]
        if not wheels:
            msg = f"`{package.name}` has no wheel in the index"
            raise HostError(msg, hint="sdists are not used, as their code would run")
        try:
            found.append(max(wheels, key=lambda wheel: parse_wheel_filename(wheel.file)[2]))
        except ValueError as error:
            msg = f"the index has an invalid wheel of `{package.name}`: {error}"
            raise HostError(msg, hint="check the indexes in uv's settings") from error
    return found


def _wheel(row: _Row, package: _Package, folder: str) -> IndexWheel:
    url = row.url or Path(folder, row.path).resolve().as_uri()
    return IndexWheel(
        name=package.name,
        file=unquote(urlsplit(url).path.rpartition("/")[2]),
        version=package.version,
        url=url,
        sha256=row.hashes.get("sha256", ""),
        size=row.size,
    )


def wheel_sizes(wheels: Sequence[IndexWheel]) -> dict[str, int]:
    """Return the bytes of wheels, 0 if unknown; ask the server if its index lacks them."""
    with ThreadPoolExecutor() as pool:
        return dict(zip((wheel.file for wheel in wheels), pool.map(_size, wheels), strict=True))


@cache
def _size(wheel: IndexWheel) -> int:
    with suppress(HostError):
        return wheel.size or Fetcher(wheel.url).head(wheel.url).size or 0
    return 0
