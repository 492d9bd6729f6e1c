"""Evaluates the source of a spec."""

import re
from collections.abc import Collection

import msgspec

from torchyard.config.matrix import Problems
from torchyard.config.spec import DownloadSpec, SourceSpec
from torchyard.model.config import DeclaredDownload, Patches, Source
from torchyard.model.recipe import Stage

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT_HINT = "40 hexadecimal digits, as `git rev-parse` prints them"
_ARCHIVE_HINT = "write https://… without a user name or password, or a path"
_SDIST_HINT = "a project and its version, such as torch-scatter==2.1.2"
_ALSO = 'git = "https://…" with commit = "…", or archive = "https://…" with sha256 = "…"'
_HINT = "64 hexadecimal digits, as `sha256sum` prints them"
_DEBIAN = re.compile(r"[a-z0-9][a-z0-9.+-]+=[0-9][A-Za-z0-9.+:~-]*")
_SDIST = re.compile(r"[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*==[\w.!+]+")
_ARCHIVE = re.compile(r"https?://[^@/\s]+/\S+|(?!.*://).+")
"""An address without a user name, or a path."""


def read_source(spec: SourceSpec, problems: Problems, *, has_root: bool) -> Source:
    """Return where the source comes from; without `has_root`, it can't come from Debian."""
    commit = spec.commit
    given = (spec.git, spec.path, spec.archive, spec.sdist, spec.debian)
    if sum(one is not None for one in given) != 1:
        hint = 'git = "https://…" with rev = "v2.14.0", or path = "." for this directory'
        what = "[source] needs one of `git`, `path`, `archive`, `sdist` and `debian`"
        problems.add(("source",), what, hint)
    elif spec.debian is not None and not _DEBIAN.fullmatch(spec.debian):
        hint = "a name and a version, such as pytorch=2.6.0+dfsg-7; `apt-cache showsrc` lists them"
        problems.add(("source", "debian"), f"`{spec.debian}` is no source package", hint)
    elif spec.debian is not None and not has_root:
        hint = "make a root with `torchyard root make`, and name it: root = …"
        problems.add(("source", "debian"), "a source package needs a root in [toolchain]", hint)
    elif spec.git is not None and not (spec.rev or commit):
        hint = "a plan is made of one commit: name it, or a tag"
        problems.add(("source", "git"), "[source] has `git` but no `rev`", hint)
    elif spec.git is None and (spec.rev is not None or commit is not None):
        key = "rev" if commit is None else "commit"
        what = f"`{key}` belongs to `git`; any other source is taken as it is"
        problems.add(("source", key), what, at_key=True)
    if commit is not None and not _COMMIT.fullmatch(commit):
        problems.add(("source", "commit"), f"`{commit}` is not a commit", _COMMIT_HINT)
    if commit is None and spec.rev and _COMMIT.fullmatch(spec.rev):
        commit = spec.rev
    _check_archive(spec, problems)
    _check_left_out(spec, problems)
    return Source(
        git=spec.git,
        rev=spec.rev,
        commit=commit,
        path=spec.path,
        leave_out=tuple(spec.leave_out),
        include_ignored=spec.include_ignored,
        debian=spec.debian,
        archive=spec.archive,
        sdist=spec.sdist,
        sha256=spec.sha256,
        submodules=spec.submodules,
        also=tuple(_read_download(one, n, problems) for n, one in enumerate(spec.also)),
    )


def _read_download(spec: DownloadSpec, number: int, problems: Problems) -> DeclaredDownload:
    def refuse(key: str, what: str, hint: str) -> None:
        problems.add(("source", "also", number, *([key] if key else [])), what, hint)

    if sum(one is not None for one in (spec.git, spec.archive, spec.package)) != 1:
        refuse("", "[[source.also]] needs one of `git`, `archive` and `package`", _ALSO)
    if spec.commit is not None and not _COMMIT.fullmatch(spec.commit):
        refuse("commit", f"`{spec.commit}` is not a commit", _COMMIT_HINT)
    if spec.sha256 is not None and not _SHA256.fullmatch(spec.sha256):
        refuse("sha256", f"`{spec.sha256}` is no sha256", _HINT)
    if spec.archive is not None and not _ARCHIVE.fullmatch(spec.archive):
        refuse("archive", f"`{spec.archive}` is no address of a file", _ARCHIVE_HINT)
    if spec.package is not None and not _SDIST.fullmatch(spec.package):
        refuse("package", f"`{spec.package}` is no release of a project", _SDIST_HINT)
    if spec.to is not None and (spec.to.startswith("/") or {"", ".."} & {*spec.to.split("/")}):
        refuse("to", f"`{spec.to}` is not in the source", "write a path in it: third_party/eigen")
    return msgspec.convert(msgspec.to_builtins(spec), DeclaredDownload)


def declare_download(url: str, revision: str = "", digest: str = "") -> str:
    """Return the lines of a file for what a project downloads: a commit of git, or a file.

    `revision` is what it asks git for, `digest` is as CMake has it: `SHA256=…`.
    """
    if not revision:
        name, _, sha256 = digest.partition("=")
        lines = [f'archive = "{url}"', f'sha256 = "{sha256}"' if name.lower() == "sha256" else ""]
    else:
        is_commit = _COMMIT.fullmatch(revision)
        lines = [f'git = "{url}"', f'{"commit" if is_commit else "rev"} = "{revision}"']
    return "\n".join(["[[source.also]]", *filter(None, lines)])


def _check_left_out(spec: SourceSpec, problems: Problems) -> None:
    for key in ("leave_out", "include_ignored"):
        if getattr(spec, key) and spec.path is None:
            what = f"`{key}` belongs to `path`; any other source is taken as it is"
            problems.add(("source", key), what, at_key=True)
    for number, name in enumerate(spec.leave_out):
        if not name or name.startswith("/") or ".." in name.split("/"):
            hint = "write the path of a file or directory in it, without globs"
            what = f"`{name}` is not in the source directory"
            problems.add(("source", "leave_out", number), what, hint)


def _check_archive(spec: SourceSpec, problems: Problems) -> None:
    archive, sha256 = spec.archive, spec.sha256
    if archive is not None and not _ARCHIVE.fullmatch(archive):
        what = f"`{archive}` is no address of an archive"
        problems.add(("source", "archive"), what, _ARCHIVE_HINT)
    if spec.sdist is not None and not _SDIST.fullmatch(spec.sdist):
        what = f"`{spec.sdist}` is no release of a project"
        problems.add(("source", "sdist"), what, _SDIST_HINT)
    key = "archive" if spec.sdist is None else "sdist"
    given = archive or spec.sdist
    if given is not None and sha256 is None:
        problems.add(("source", key), f"[source] has `{key}` but no `sha256`", _HINT)
    elif given is None and sha256 is not None:
        what = "`sha256` belongs to `archive` or `sdist`"
        problems.add(("source", "sha256"), what, at_key=True)
    elif sha256 is not None and not _SHA256.fullmatch(sha256):
        problems.add(("source", "sha256"), f"`{sha256}` is no sha256", _HINT)


def read_patches(spec: SourceSpec, steps: Collection[Stage], problems: Problems) -> Patches:
    """Return the patches of the source; `steps` are the stages that the file gives steps for."""
    for index, glob in enumerate(spec.patches):
        if not glob:
            problems.add(("source", "patches", index), "a patch is a file")
    if spec.patches and Stage.SOURCE in steps:
        what = "[[steps.source]] takes the place of what applies patches"
        problems.add(("source", "patches"), what, "apply them in a step, or leave the steps out")
    return Patches(globs=tuple(spec.patches))
