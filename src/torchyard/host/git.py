"""Queries to git."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from torchyard.errors import HostError
from torchyard.host.process import capture

_NO_PROGRAMS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false")
HARMLESS = {"GIT_CONFIG_PARAMETERS": " ".join(f"'{setting}'" for setting in _NO_PROGRAMS)}
"""Options of `git -c` that override a tree's settings with programs for git to run."""

_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
"""Variables that git sets for hooks: they name the hook's repository, not the tree's."""


def read_git(tree: Path, *words: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return git's output about a tree, without running programs from the tree's settings.

    These include the programs that fetch objects for a partial clone. `more` are variables.
    """
    env = {n: text for n, text in os.environ.items() if n not in _HOOK_VARIABLES}
    env |= {"GIT_ALLOW_PROTOCOL": "none", **HARMLESS, **more}
    return capture(["git", *words], cwd=tree, env=env)


def is_checkout(folder: str | Path) -> bool:
    """Return whether a directory is the top of a git checkout."""
    return Path(folder, ".git").is_file() or os.path.lexists(f"{folder}/.git/HEAD")


def visible_paths(folder: str, prefix: str = "") -> frozenset[str] | None:
    """Return the paths below a directory that git tracks or would add, each with a prefix.

    Directories end in `/`, except nested repositories. None means all paths: the directory is in no
    checkout, or git ignores it entirely.
    """
    top = Path(folder).resolve()
    if not any(map(is_checkout, (top, *top.parents))):
        return None
    try:
        listed = read_git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except HostError as error:
        msg = f"git can't list the files of `{folder}`: {error}"
        hint = "let git trust the directory, or set include_ignored = true in [source]"
        raise HostError(msg, hint=hint) from error
    paths = {f"{prefix}{path.rstrip('/')}" for path in listed.split("\0") if path}
    folders: set[str] = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and f"{path}/" not in folders:
            folders.add(f"{path}/")
    return frozenset(paths | folders) or None


def file_at(revision: str, path: str) -> str:
    """Read a file at a revision; `REVISION:PATH` names another path in the repository."""
    folder, name = Path(path).absolute().parent, f"./{Path(path).name}"
    if ":" in revision:
        revision, _, name = revision.partition(":")
        folder = Path.cwd()
    try:
        words = ("show", "--end-of-options", f"{revision}:{name}")
        return capture(["git", *words], cwd=folder, env={**os.environ, **HARMLESS})
    except HostError as error:
        msg = f"`{revision}` is not a file, and git can't show {name} at that revision: {error}"
        hint = "name a file that exists, or a revision of the repository that holds the file"
        raise HostError(msg, hint=hint) from error


def head_message(tree: Path) -> str:
    """Return the message of the newest commit; for a merge, of the newest merged commit."""
    with suppress(HostError):
        return read_git(tree, "log", "-1", "--format=%B", "HEAD^2")
    return read_git(tree, "log", "-1", "--format=%B")


def find_top(inside: str) -> Path:
    """Return the top directory of the repository that contains a directory."""
    try:
        found = read_git(Path(inside).absolute(), "rev-parse", "--show-toplevel")
    except HostError as error:
        msg = f"git finds no repository with `{inside}`: {error}"
        raise HostError(msg) from error
    return Path(found.rstrip("\n"))


def export_tree(revision: str, top: Path, folder: Path) -> None:
    """Write the files of a revision, without submodules, to a new directory."""
    asked = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    try:
        commit = read_git(top, *asked).strip()
    except HostError as error:
        msg = f"the repository has no commit `{revision}`"
        raise HostError(msg, hint="name a commit, tag or branch; fetch it first in CI") from error
    folder.mkdir(parents=True)
    own_index = {"GIT_INDEX_FILE": str(folder.with_name(f"{folder.name}.index"))}
    words = ("--work-tree", str(folder), "checkout", "--quiet", "--force", commit, "--", ".")
    read_git(top, *words, more={**_without_filters(top), **own_index})


def _without_filters(top: Path) -> dict[str, str]:
    """Return variables that turn off the filters in a repository's own settings.

    A checkout would run their programs. Filters in the user's settings, such as LFS, are kept.
    """
    try:
        names = read_git(
            top, "config", "--local", "-z", "--name-only", "--get-regexp", r"^filter\."
        )
    except HostError:
        return {}  # there are none
    filters = sorted({name.rpartition(".")[0] for name in names.split("\0") if name})
    keys = [f"{name}.{key}" for name in filters for key in ("smudge", "process", "required")]
    off = {"GIT_CONFIG_COUNT": str(len(keys))}
    for number, key in enumerate(keys):
        off |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": ""}
    return off


def is_commit(revision: str) -> bool:
    """Return whether a revision is a full commit hash, whose meaning never changes."""
    return re.fullmatch(r"[0-9a-f]{40}", revision) is not None
