"""Queries to repositories elsewhere, with this machine's network settings."""

import re
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.network_faults import network_error
from torchyard.host.network_settings import fetching_environment
from torchyard.host.process import capture

_RELEASE = re.compile(r"v\d+\.\d+\.\d+")


def newest_tag(url: str) -> tuple[str, str] | None:
    """Return the tag of a repository's newest release, such as v5.0.1, and its commit."""
    listed = fetch_git("ls-remote", "--tags", "--", url)
    commits: dict[str, str] = {}
    for line in listed.splitlines():
        commit, _, name = line.partition("\t")
        tag = name.removeprefix("refs/tags/")
        if tag.endswith("^{}") or tag not in commits:  # what an annotated tag points to
            commits[tag.removesuffix("^{}")] = commit
    releases = [tag for tag in commits if _RELEASE.fullmatch(tag)]
    newest = max(releases, key=_numbers, default=None)
    return None if newest is None else (newest, commits[newest])


def fetch_git(*words: str, cwd: Path = Path()) -> str:
    """Run a git command that may use the network, with this machine's settings."""
    env = fetching_environment() | {"GIT_TERMINAL_PROMPT": "0"}
    try:
        return capture(["git", *words], cwd=cwd, env=env)
    except HostError as error:
        if cause := network_error(str(error)):
            raise cause from error
        raise


def _numbers(tag: str) -> list[int]:
    return [int(word) for word in tag.removeprefix("v").split(".")]


def resolve_commit(url: str, revision: str) -> str | None:
    """Return the current commit of a repository's branch or tag, or None."""
    listed = fetch_git("ls-remote", "--", url, revision, f"{revision}^{{}}")
    rows = (line.partition("\t") for line in listed.splitlines())
    found = {name: commit for commit, _, name in rows}
    tag = f"refs/tags/{revision}"
    wanted = (revision, f"refs/heads/{revision}", f"{tag}^{{}}", tag)
    return next((found[name] for name in wanted if name in found), None)
