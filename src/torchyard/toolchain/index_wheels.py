"""Wheels that the caller's package index has, found by uv with the caller's own settings."""

import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.utils import parse_wheel_filename

from torchyard.errors import HostError
from torchyard.model.values import Value
from torchyard.toolchain.pypi import call_uv

_NEWEST_GLIBC = "manylinux_2_40"
_COMPILE = ("pip", "compile", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-header")
_NO_WHEEL = "No solution found"


class IndexWheel(Value, kw_only=True):
    """A wheel of an index."""

    file: str
    version: str
    url: str
    sha256: str = ""


class _Row(Value, kw_only=True, forbid_unknown_fields=False):
    url: str = ""
    path: str = ""
    hashes: dict[str, str] = {}


class _Package(Value, kw_only=True, forbid_unknown_fields=False):
    version: str = ""
    wheels: tuple[_Row, ...] = ()


class _Lock(Value, kw_only=True, forbid_unknown_fields=False):
    packages: tuple[_Package, ...] = ()


def find_wheel(requirement: str, python: str, machine: str) -> IndexWheel | None:
    """Return the wheel of the newest version that a requirement admits; None if there is none.

    Args:
        requirement: Such as `torch==2.14.*`.
        python: The version of Python that it is for, such as 3.12.
        machine: Such as `x86_64`, with Linux and any glibc.
    """
    with TemporaryDirectory(prefix="torchyard-") as folder:
        asked = Path(folder, "requirements.in")
        asked.write_text(f"{requirement}\n", encoding="utf-8")
        lock = Path(folder, "pylock.toml")
        where = ["--python-version", python, "--python-platform", f"{machine}-{_NEWEST_GLIBC}"]
        try:
            call_uv([*_COMPILE, *where, str(asked), "-o", str(lock)])
        except HostError as error:
            if _NO_WHEEL in str(error):
                return None
            raise
        found = msgspec.convert(tomllib.loads(lock.read_text(encoding="utf-8")), _Lock)
        wheels = [_wheel(row, one.version, folder) for one in found.packages for row in one.wheels]
    return max(wheels, key=lambda wheel: parse_wheel_filename(wheel.file)[2], default=None)


def _wheel(row: _Row, version: str, folder: str) -> IndexWheel:
    url = row.url or Path(folder, row.path).resolve().as_uri()
    file = unquote(urlsplit(url).path.rpartition("/")[2])
    return IndexWheel(file=file, version=version, url=url, sha256=row.hashes.get("sha256", ""))
