"""Source snapshots: a revision without history, with the same bytes and times everywhere."""

import os
import shutil
from collections.abc import Collection
from functools import partial
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.errors import HostError
from torchyard.host.archive import unpack_source
from torchyard.host.files import basename
from torchyard.host.git import is_commit
from torchyard.host.git_fetch import fetch_git, resolve_commit
from torchyard.host.tree import SourceContent, read_source_tree
from torchyard.host.untrusted_tree import UntrustedTree

EPOCH = 315_532_800
"""The mtime of every file: 1980-01-01, the earliest in zip archives."""

SUBMODULES = "torchyard-submodules.txt"
"""The file in a checked out source with the commit and path of each submodule."""


def copy_folder(
    folder: Path,
    digest: str,
    to: Path,
    leave_out: Collection[str],
    *,
    include_ignored: bool = False,
) -> None:
    """Copy the files of a source directory; raise HostError if their digest is not as planned.

    The digest is compared before, so that no unplanned file is copied, and after, as the directory
    may change meanwhile.
    """
    if not folder.is_dir():
        msg = f"there is no source directory `{folder}`"
        raise HostError(msg, hint="its path is relative to the file: name that with -f")
    make_empty(to)
    tree = read_source_tree(str(folder), leave_out, include_ignored=include_ignored)
    _compare(folder, tree, digest)
    for path, kind, content in tree.files:
        target = to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            target.symlink_to(content)
            continue
        try:
            shutil.copy(folder / path, target)
        except FileNotFoundError as error:
            raise _changed(folder, path, "removed") from error
    _compare(folder, read_source_tree(str(to), include_ignored=True), digest)
    normalise(to)


def _compare(folder: Path, found: SourceContent, planned: str) -> None:
    if found.digest != planned:
        times = ((os.lstat(folder / file.path).st_mtime, file.path) for file in found.files)
        raise _changed(folder, max(times, default=(0, "a file"))[1], "changed last")


def _changed(folder: Path, path: str, how: str) -> HostError:
    msg = f"the source directory `{folder}` has changed since the plan was made"
    hint = f"`{path}` was {how}: plan again; .gitignore keeps programs' files out"
    return HostError(msg, hint=hint)


def check_out(url: str, revision: str, to: Path, *, submodules: bool) -> None:
    """Check out one commit with its submodules, and remove all `.git`.

    The commits of submodules are kept in a file.
    """
    _require_commit(url, revision)
    make_empty(to)
    git = partial(_git, to)
    git("init", "--quiet")
    git("remote", "add", "--", "origin", url)
    _fetch(to, "origin", revision)
    git("checkout", "--quiet", revision)
    if submodules:
        git("submodule", "--quiet", "update", "--init", "--recursive", "--depth=1")
        each = 'printf "%s %s\\n" "$sha1" "$displaypath"'
        if commits := git("submodule", "--quiet", "foreach", "--recursive", each):
            with UntrustedTree(to) as tree, tree.create_file(SUBMODULES) as file:
                file.write(commits.encode())
    for found in sorted(to.rglob(".git"), reverse=True):
        shutil.rmtree(found) if found.is_dir() else found.unlink()
    normalise(to)


def keep_repository(url: str, revision: str, tag: str, to: Path) -> None:
    """Create a bare repository with one commit, also under a tag.

    Its objects are not compressed, as compressed files differ between versions of git.
    """
    _require_commit(url, revision)
    make_empty(to)
    _git(to, "init", "--quiet", "--bare", "--template=")
    _git(to, "config", "fetch.unpackLimit", "10000000")
    _git(to, "config", "core.looseCompression", "0")
    _fetch(to, url, revision)
    for name in ("refs/heads/torchyard", *([f"refs/tags/{tag}"] if tag else [])):
        _git(to, "update-ref", name, revision)
    _git(to, "symbolic-ref", "HEAD", "refs/heads/torchyard")
    (to / "FETCH_HEAD").unlink()


def _require_commit(url: str, revision: str) -> None:
    if not is_commit(revision):
        commit = resolve_commit(url, revision)
        msg = f"`{revision}` of {url} may change to another commit"
        hint = f'write commit = "{commit}" beside it' if commit else "name a commit"
        raise HostError(msg, hint=hint)


def _git(folder: Path, *words: str) -> str:
    safe = ("-c", "advice.detachedHead=false", "-c", "protocol.ext.allow=never")
    return fetch_git(*safe, *words, cwd=folder)


def _fetch(folder: Path, remote: str, commit: str) -> None:
    try:
        _git(folder, "fetch", "--quiet", "--depth=1", "--", remote, commit)
    except HostError:  # not every server allows fetching single commits
        every = "+refs/heads/*:refs/remotes/origin/*"
        _git(folder, "fetch", "--quiet", "--tags", "--", remote, every)


def unpack_archive(path: str, sha256: str, to: Path) -> None:
    """Unpack an archive at a path or address; raise HostError if its digest is wrong."""
    with (
        TemporaryDirectory(dir=to.parent) as folder,
        fetch_archive(path, sha256, Path(folder)).open("rb") as file,
    ):
        unpack_source(file, basename(path), to)
    normalise(to)


def fetch_archive(address: str, sha256: str, folder: Path) -> Path:
    """Return the path of a file, downloaded if at an address; raise HostError if it differs."""
    path = Path(address)
    if "://" in address:
        from torchyard.host.http import HttpClient  # noqa: PLC0415 - most sources need no web

        path = folder / (basename(address) or "archive")
        try:
            with path.open("wb") as file:
                file.writelines(HttpClient().pieces(address))
        except FileNotFoundError as error:
            msg = f"there is no archive at {error}"
            raise HostError(msg, hint="check the address") from error
    if not path.is_file():
        msg = f"there is no archive `{address}`"
        raise HostError(msg, hint="[source] archive is relative to the file that names it")
    with path.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != sha256:
        msg = f"the archive {address} has the sha256 {found}, not {sha256 or 'one that is named'}"
        hint = "if you trust this archive, write its sha256"
        raise HostError(msg, hint=hint)
    return path


def make_empty(folder: Path) -> None:
    """Create an empty directory; remove files of an earlier attempt."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def normalise(folder: Path) -> None:
    """Set the same mtime on every file, and mode 755 or 644."""
    for top, names, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(top, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
            os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)
        for name in names:
            os.utime(Path(top, name), (EPOCH, EPOCH), follow_symlinks=False)
