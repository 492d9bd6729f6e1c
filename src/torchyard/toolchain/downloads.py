"""What a project downloads while it is built: fetched with its source, and offered to its build.

A build has no network. git finds repositories that were kept in place of the addresses it is asked
for, as CMake's FetchContent and ExternalProject do, and pip finds packages. The addresses of other
files are replaced by those of the files, in the build's own copy of the source.
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
"""The directory of a source with what was fetched, in a directory for each number in its list."""

_LIST = "addresses.json"
_LONGEST = 1 << 20
"""Larger files of a project are not looked through for addresses."""


def keep_downloads(downloads: Iterable[DeclaredDownload], base: Path, tree: Path) -> None:
    """Fetch everything that a build would download into the tree of its source."""
    asked: list[str] = []
    for download in downloads:
        to = tree / (download.to or f"{FOLDER}/{len(asked)}")
        if to.is_symlink() or not to.parent.resolve().is_relative_to(tree.resolve()):
            msg = f"`{to.relative_to(tree)}` of the source leads elsewhere"
            raise HostError(msg, hint="choose another directory: `to` of [[source.also]]")
        _keep(download, base, to)
        asked += [] if download.to else [download.asked]
    if asked:
        (tree / FOLDER / _LIST).write_bytes(msgspec.json.encode(asked))
        normalise(tree)


def _keep(download: DeclaredDownload, base: Path, to: Path) -> None:
    """Put a download into a directory: unpacked if that is its own, else as it is offered."""
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
    """Return the variables by which a build finds what was kept in its source.

    Addresses of files are replaced in the build's copy of the source.
    """
    folder, files, links = source / FOLDER, dict[str, str](), list[str]()
    if not (folder / _LIST).is_file():
        return {}
    settings = [("protocol.file.allow", "always"), ("safe.directory", "*")]
    for number, asked in enumerate(msgspec.json.decode((folder / _LIST).read_bytes())):
        repository = folder / str(number)
        if (repository / "HEAD").is_file():
            plain = asked.removesuffix("/").removesuffix(".git")
            key = f"url.{repository.as_uri()}.insteadOf"
            settings += [(key, f"{plain}{end}") for end in ("", "/", ".git")]
        else:
            links.append(str(repository))
            files[asked] = next(repository.iterdir()).as_uri()
    _replace_addresses({asked: uri for asked, uri in files.items() if "://" in asked}, build)
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found | ({"PIP_FIND_LINKS": " ".join(links), "PIP_NO_INDEX": "1"} if links else {})


def _replace_addresses(files: dict[str, str], build: Path) -> None:
    for path in build.rglob("*"):
        if not files or path.is_symlink() or not path.is_file() or path.stat().st_size > _LONGEST:
            continue
        before = after = path.read_bytes()
        for asked, uri in files.items():
            after = after.replace(asked.encode(), uri.encode())
        if after != before:
            path.write_bytes(after)
