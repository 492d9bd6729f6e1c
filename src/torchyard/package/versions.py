"""Names and versions of packages, without any I/O."""

import re
from collections.abc import Iterable

from packaging.version import Version

from torchyard.errors import ConfigError, TorchyardError

_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")


def local_version(version: str, compute: str) -> str:
    """Return a version with its compute platform: `2.13.0+cu130`."""
    if parse_version(version).local:
        msg = f"the version `{version}` has a local part already"
        raise ConfigError(msg, hint="remove it, with the `+`: torchyard adds the compute")
    return str(parse_version(f"{version}+{compute}"))


def parse_version(text: str, error: type[TorchyardError] = ConfigError) -> Version:
    """Parse a version; raise an error of the given kind."""
    try:
        return Version(text)
    except ValueError as why:  # also for numbers with thousands of digits
        msg = f"`{text}` is not a version of a Python package"
        raise error(msg, hint="write it as in 2.14.0, 2.14.0rc1 or 2.14.0+cpu") from why


def public_version(version: str) -> str:
    """Return a version without its local part: `2.13.0` for `2.13.0+cu130`."""
    try:
        return Version(version).public
    except ValueError:
        return version


def is_version_of(found: str, release: str) -> bool:
    """Return whether a version belongs to a release, which may omit the local part."""
    try:
        version, wanted = Version(found), Version(release)
    except ValueError:
        return found == release
    return version == wanted or (wanted.local is None and version.public == wanted.public)


def is_version(text: str) -> bool:
    try:
        parse_version(text)
    except ConfigError:
        return False
    return True


def glibc_of(versions: Iterable[str]) -> tuple[int, int] | None:
    """Return the oldest glibc with all of these symbol versions; None if none is glibc's."""
    found = (_GLIBC.fullmatch(version) for version in versions)
    return max(((int(f[1]), int(f[2])) for f in found if f), default=None)


def package_folder(name: str) -> str:
    """Return the folder of a project's Python package: `tiny_torch` for tiny-torch."""
    return re.sub(r"[-_.]+", "_", name)


def unquoted(file_name: str) -> str:
    """Return a file name without the URL quoting that download programs may leave."""
    return file_name.replace("%2B", "+").replace("%2b", "+")
