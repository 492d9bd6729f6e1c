"""Downloads of a project's build: fetched with its source, and offered to the build.

A build has no network. git gets local repositories for the addresses that CMake's FetchContent and
ExternalProject request, and pip finds packages. Addresses of other files are replaced by those of
local files, in the build's own copy of the source.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from torchyard.errors import HostError
from torchyard.host.snapshot import (
    check_out,
    fetch_archive,
    keep_repository,
    make_empty,
    normalise,
    unpack_archive,
)
from torchyard.model.config import DeclaredDownload

FOLDER = ".torchyard-downloads"
"""The directory of a source with its downloads, in directories numbered as in the list."""

_LIST = "addresses.json"
_LONGEST = 1 << 20
"""Maximum size of a file in which addresses are replaced."""


def keep_downloads(downloads: Iterable[DeclaredDownload], base: Path, tree: Path) -> None:
    """Fetch the downloads of a build into the tree of its source."""
    addresses: list[str] = []
    for download in downloads:
        to = tree / (download.to or f"{FOLDER}/{len(addresses)}")
        if to.is_symlink() or not to.parent.resolve().is_relative_to(tree.resolve()):
            msg = f"`{to.relative_to(tree)}` leads out of the source"
            raise HostError(msg, hint="choose another directory: `to` of [[source.also]]")
        _keep(download, base, to)
        addresses += [] if download.to else [download.requested]
    if addresses:
        (tree / FOLDER / _LIST).write_bytes(msgspec.json.encode(addresses))
        normalise(tree)


def _keep(download: DeclaredDownload, base: Path, to: Path) -> None:
    """Put a download into a directory: unpacked if it has its own, else in the form offered."""
    if download.git is not None:
        is_path = (base / download.git).is_dir()
        url = str((base / download.git).resolve()) if is_path else download.git
        revision = download.commit or download.rev or "HEAD"
        if download.to:
            check_out(url, revision, to, submodules=True)
        else:
            keep_repository(url, revision, download.rev or "", to)
        return
    make_empty(to)
    with TemporaryDirectory(dir=to.parent) as folder:
        sha256 = download.sha256 or ""
        archive = download.archive or ""
        archive = archive if "://" in archive else str(base / archive)
        if download.to:
            unpack_archive(archive, sha256, to)
        else:
            shutil.copy(fetch_archive(archive, sha256, Path(folder)), to)


def offer_downloads(source: Path, build: Path) -> dict[str, str]:
    """Return the variables that let a build find the downloads in its source.

    Addresses of files are replaced in the build's copy of the source.
    """
    folder, files, links = source / FOLDER, dict[str, str](), list[str]()
    if not (folder / _LIST).is_file():
        return {}
    settings = [("protocol.file.allow", "always"), ("safe.directory", "*")]
    for number, address in enumerate(msgspec.json.decode((folder / _LIST).read_bytes())):
        repository = folder / str(number)
        if (repository / "HEAD").is_file():
            plain = address.removesuffix("/").removesuffix(".git")
            key = f"url.{repository.as_uri()}.insteadOf"
            settings += [(key, f"{plain}{end}") for end in ("", "/", ".git")]
        else:
            links.append(str(repository))
            files[address] = next(repository.iterdir()).as_uri()
    _replace_addresses({address: uri for address, uri in files.items() if "://" in address}, build)
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found | ({"PIP_FIND_LINKS": " ".join(links), "PIP_NO_INDEX": "1"} if links else {})


def _replace_addresses(files: dict[str, str], build: Path) -> None:
    for path in build.rglob("*"):
        if not files or path.is_symlink() or not path.is_file() or path.stat().st_size > _LONGEST:
            continue
        before = after = path.read_bytes()
        for address, uri in files.items():
            after = after.replace(address.encode(), uri.encode())
        if after != before:
            path.write_bytes(after)
