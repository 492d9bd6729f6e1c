"""Apply patches to a source, each completely or not at all, and equally on every machine."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from torchyard.errors import BuildError, HostError
from torchyard.host.process import capture
from torchyard.host.snapshot import normalise

_APPLY = ("git", "apply", "--whitespace=nowarn")
_FAILED = re.compile(r"error: patch failed: (.*):(\d+)$", re.MULTILINE)
_ERROR = re.compile(r"error: (.*)$", re.MULTILINE)
_FILE = re.compile(r"^\+\+\+ (?:[^/\s]*/)?([^\t\n]*)")
_HUNK = re.compile(r"^@@ -(\d+)")


def apply_patches(texts: Mapping[str, str], series: Iterable[str], folder: Path) -> None:
    """Apply the patches of a series, in its order."""
    for name in series:
        _apply_patch(name, texts[name], folder)
    normalise(folder)


def _apply_patch(name: str, text: str, folder: Path) -> None:
    """Apply a patch like `git apply`: without fuzz, and without the first directory of paths."""
    with NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        try:
            _apply(folder, file.name)
        except HostError as error:
            if not _ERROR.search(str(error)):  # such as missing git
                raise
            msg = f"the patch `{name}` does not apply: {_reason(str(error), text)}"
            hint = "create it again from this source with `git diff`, or remove it"
            if _is_applied(folder, file.name):
                msg = f"the patch `{name}` does not apply: the source has this change already"
                hint = "remove it from `patches`"
            raise BuildError(msg, hint=hint) from error


def _apply(folder: Path, *words: str) -> None:
    """Run `git apply` without any surrounding repository or settings."""
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    capture([*_APPLY, *words], cwd=folder, env=env)


def _is_applied(folder: Path, file: str) -> bool:
    try:
        _apply(folder, "--check", "--reverse", file)
    except HostError:
        return False
    return True


def _reason(output: str, text: str) -> str:
    """Return why git does not apply a patch: its first failing hunk, or git's message."""
    found = _FAILED.search(output)
    if found is None:
        return "; ".join(_ERROR.findall(output))
    path, line = found.groups()
    here = ""
    for number, written in enumerate(text.splitlines(), start=1):
        if named := _FILE.match(written):
            here = named[1]
        hunk = _HUNK.match(written)
        if hunk and hunk[1] == line and here == path:
            return f"{path} lacks the lines of its hunk `{written}` (line {number} of the patch)"
    return f"{path} lacks the lines of its hunk for line {line}"
