"""Evaluate the source of a spec."""

import re
from collections.abc import Collection

import msgspec

from torchyard.config.matrix import Problems
from torchyard.config.positions import Path
from torchyard.config.spec import SourceSpec
from torchyard.model.config import DeclaredDownload, Patches, Source
from torchyard.model.recipe import Stage

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FORMS = {
    "commit": (_COMMIT, "is not a commit", "40 hexadecimal digits, as `git rev-parse` prints them"),
    "sha256": (_SHA256, "is not a sha256", "64 hexadecimal digits, as `sha256sum` prints them"),
    "debian": (
        re.compile(r"[a-z0-9][a-z0-9.+-]+=[0-9][A-Za-z0-9.+:~-]*"),
        "is not a source package",
        "a name and a version, such as pytorch=2.6.0+dfsg-7; `apt-cache showsrc` lists them",
    ),
    "sdist": (
        re.compile(r"[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*==[\w.!+]+"),
        "is not a release of a project",
        "a project and its version, such as torch-scatter==2.1.2",
    ),
    "archive": (
        re.compile(r"https?://[^@/\s]+/\S+|(?!.*://).+"),
        "is not the address of an archive",
        "write https://… without a user name or password, or a path",
    ),
}
"""The syntax of values, by key."""


def read_source(spec: SourceSpec, problems: Problems, *, has_root: bool) -> Source:
    """Return the source; without `has_root`, it can't be Debian's."""
    commit = spec.commit
    given = (spec.git, spec.path, spec.archive, spec.sdist, spec.debian)
    if sum(value is not None for value in given) != 1:
        hint = 'git = "https://…" with rev = "v2.14.0", or path = "." for this directory'
        what = "[source] needs one of `git`, `path`, `archive`, `sdist` and `debian`"
        problems.add(("source",), what, hint)
    elif spec.debian is not None and not has_root:
        hint = "create a root with `torchyard toolchain root`, and set `root`"
        problems.add(("source", "debian"), "a source package needs a root in [toolchain]", hint)
    elif spec.git is not None and not (spec.rev or commit):
        hint = "name the commit or tag to build"
        problems.add(("source", "git"), "[source] has `git` but no `rev`", hint)
    elif spec.git is None and (spec.rev is not None or commit is not None):
        key = "rev" if commit is None else "commit"
        what = f"`{key}` belongs to `git`; other sources are used unchanged"
        problems.add(("source", key), what, at_key=True)
    _check_forms(spec, ("source",), problems)
    if commit is None and spec.rev and _COMMIT.fullmatch(spec.rev):
        commit = spec.rev
    _check_archive(spec, problems)
    _check_left_out(spec, problems)
    _check_downloads(spec, problems)
    values = msgspec.to_builtins(spec) | ({"commit": commit} if commit else {})
    return msgspec.convert({key: values[key] for key in values if key != "patches"}, Source)


def _check_forms(spec: SourceSpec | DeclaredDownload, path: Path, problems: Problems) -> None:
    for key, (pattern, what, hint) in _FORMS.items():
        value = getattr(spec, key, None)
        if value is not None and not pattern.fullmatch(value):
            problems.add((*path, key), f"`{value}` {what}", hint)


def _check_downloads(spec: SourceSpec, problems: Problems) -> None:
    for number, download in enumerate(spec.also):
        path: Path = ("source", "also", number)
        if (download.git is None) == (download.archive is None):
            hint = "`git` has a `commit`, `archive` a `sha256`"
            problems.add(path, "[[source.also]] needs one of `git` and `archive`", hint)
        _check_forms(download, path, problems)
        to = download.to
        if to is not None and (to.startswith("/") or {"", ".."} & {*to.split("/")}):
            what = f"`{to}` is not in the source"
            problems.add((*path, "to"), what, "write a path in it: third_party/eigen")


def _check_left_out(spec: SourceSpec, problems: Problems) -> None:
    for key in ("leave_out", "include_ignored"):
        if getattr(spec, key) and spec.path is None:
            what = f"`{key}` belongs to `path`; other sources are used unchanged"
            problems.add(("source", key), what, at_key=True)
    for number, name in enumerate(spec.leave_out):
        if not name or name.startswith("/") or ".." in name.split("/"):
            hint = "write the path of a file or directory in it, without globs"
            what = f"`{name}` is not in the source directory"
            problems.add(("source", "leave_out", number), what, hint)


def _check_archive(spec: SourceSpec, problems: Problems) -> None:
    key = "archive" if spec.sdist is None else "sdist"
    given = spec.archive or spec.sdist
    if given is not None and spec.sha256 is None:
        problems.add(("source", key), f"[source] has `{key}` but no `sha256`", _FORMS["sha256"][2])
    elif given is None and spec.sha256 is not None:
        what = "`sha256` belongs to `archive` or `sdist`"
        problems.add(("source", "sha256"), what, at_key=True)


def read_patches(spec: SourceSpec, steps: Collection[Stage], problems: Problems) -> Patches:
    """Return the patches of the source; `steps` are the stages with steps in the file."""
    for index, glob in enumerate(spec.patches):
        if not glob:
            problems.add(("source", "patches", index), "the path of a patch can't be empty")
    if spec.patches and Stage.SOURCE in steps:
        what = "[[steps.source]] replaces the step that applies patches"
        problems.add(("source", "patches"), what, "apply them in a step, or leave the steps out")
    return Patches(globs=tuple(spec.patches))
