"""How packages and their versions are called. Nothing here reads or writes anything."""

import re
from collections.abc import Iterable

from packaging.version import Version

from torchyard.errors import ConfigError, TorchyardError

_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")


def local_version(version: str, compute: str) -> str:
    """A version with the compute platform that it is built for: `2.13.0+cu130`."""
    if parse_version(version).local:
        msg = f"the version `{version}` says already what it is built for"
        raise ConfigError(msg, hint="leave out what follows the `+`; the compute goes there")
    return str(parse_version(f"{version}+{compute}"))


def parse_version(text: str, error: type[TorchyardError] = ConfigError) -> Version:
    """Read a version. Raises an error of the kind that fits where the text comes from."""
    try:
        return Version(text)
    except ValueError as why:  # or it has a number of thousands of digits
        msg = f"`{text}` is no version of a Python package"
        raise error(msg, hint="versions look like 2.14.0, 2.14.0rc1 or 2.14.0+cpu") from why


def is_version(text: str) -> bool:
    try:
        parse_version(text)
    except ConfigError:
        return False
    return True


def glibc_of(versions: Iterable[str]) -> tuple[int, int] | None:
    """The oldest glibc that has all of these versions of symbols, if some are glibc's."""
    found = (_GLIBC.fullmatch(version) for version in versions)
    return max(((int(f[1]), int(f[2])) for f in found if f), default=None)


def package_folder(name: str) -> str:
    """The folder of a project's Python package: `tiny_torch` for tiny-torch and tiny.torch."""
    return re.sub(r"[-_.]+", "_", name)


def unquoted(file_name: str) -> str:
    """A file name as it was before some program for downloads took it from an address."""
    return file_name.replace("%2B", "+").replace("%2b", "+")
