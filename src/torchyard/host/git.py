"""Queries to git."""

import re
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture


def file_at(revision: str, path: str) -> str:
    """Read a file as it was at a revision; `REVISION:PATH` names another path in the repository."""
    folder, name = Path(path).absolute().parent, f"./{Path(path).name}"
    if ":" in revision:
        revision, _, name = revision.partition(":")
        folder = Path.cwd()
    try:
        return capture(["git", "show", "--end-of-options", f"{revision}:{name}"], cwd=folder)
    except HostError as error:
        msg = f"`{revision}` is no file, and git can't show {name} at that revision: {error}"
        hint = "name a file that exists, or a revision of the repository that holds the file"
        raise HostError(msg, hint=hint) from error


def is_commit(revision: str) -> bool:
    """Return whether a revision is a full commit hash, which never changes its meaning."""
    return re.fullmatch(r"[0-9a-f]{40}", revision) is not None


def resolve_commit(url: str, revision: str) -> str | None:
    """Return the commit that a branch or tag of a repository points to now, or None."""
    listed = capture(["git", "ls-remote", "--", url, revision, f"{revision}^{{}}"], cwd=Path())
    rows = (line.partition("\t") for line in listed.splitlines())
    found = {name: commit for commit, _, name in rows}
    tag = f"refs/tags/{revision}"
    wanted = (revision, f"refs/heads/{revision}", f"{tag}^{{}}", tag)
    return next((found[name] for name in wanted if name in found), None)
