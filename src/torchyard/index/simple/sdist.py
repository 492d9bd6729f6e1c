"""Find the sdist of a project in this machine's indexes."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import InvalidVersion, Version

from torchyard.errors import HostError, UsageError
from torchyard.host.fetcher import Fetcher, directory_url
from torchyard.host.http import redact_url
from torchyard.index.simple.project_files import files_in_index, listed_wheel
from torchyard.index.simple.read import FileLink

SDIST = re.compile(r"([A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*)(?:==([\w.!+]+))?")
"""A project and its version, `name==version`; without a version, it means the newest."""


class Sdist(NamedTuple):
    """An sdist in an index."""

    name: str
    version: str
    url: str
    sha256: str
    origin: str
    """The address of the index."""
    newest: str = ""
    """A newer release with wheels, but without an sdist."""


def find_sdist(text: str, indexes: Sequence[str]) -> Sdist:
    """Return the sdist of `name==version`, or of the newest release of `name`."""
    words = SDIST.fullmatch(text)
    if words is None:
        msg = f"`{text}` does not name a release of a project"
        raise UsageError(msg, hint="write it as torch-scatter==2.1.2")
    name, wanted = canonicalize_name(words[1]), words[2]
    found: dict[Version, tuple[FileLink, str]] = {}
    wheels: set[Version] = set()
    for index in indexes:
        for link in files_in_index(index, name):
            version = _version(link.file, name)
            if version is not None and (link.yanked is None or wanted):
                found.setdefault(version, (link, index))
            elif version is None and (wheel := listed_wheel(link, name)):
                wheels.add(wheel.version)
    if not found:
        msg = f"no index of this machine has an sdist of `{name}`"
        raise HostError(msg, hint="uv's settings name the indexes; or take its repository: --git")
    releases = [version for version in found if not version.is_prerelease] or list(found)
    version = _parsed(wanted) if wanted else max(releases)
    if version is None or version not in found:
        latest = ", ".join(map(str, sorted(found)[-5:]))
        msg = f"there is no sdist of {name} {wanted}"
        raise HostError(msg, hint=f"the newest are {latest}")
    link, index = found[version]
    if "sha256" not in link.hashes:
        msg = f"the index has no SHA-256 of `{link.file}`"
        raise HostError(msg, hint="use an index that has them, as PyPI does")
    newer = [version for version in wheels if version > max(releases) and not version.is_prerelease]
    newest = str(max(newer)) if newer and not wanted else ""
    return Sdist(words[1], str(version), link.url, link.hashes["sha256"], index, newest)


def download_sdist(sdist: Sdist, to: Path) -> Path:
    """Write an sdist to a directory and return its path; the caller checks the digest."""
    path = to / PurePosixPath(urlsplit(sdist.url).path).name
    try:
        with path.open("wb") as file:
            file.writelines(Fetcher(directory_url(sdist.origin)).pieces(sdist.url))
    except FileNotFoundError as error:
        msg = f"the index lists {redact_url(sdist.url)}, but does not have it"
        raise HostError(msg, hint="report it to the owner of the index") from error
    return path


def _version(file: str, name: str) -> Version | None:
    try:
        project, version = parse_sdist_filename(file)
    except (InvalidSdistFilename, InvalidVersion):
        return None
    return version if project == name else None


def _parsed(version: str) -> Version | None:
    try:
        return Version(version)
    except InvalidVersion:
        return None
