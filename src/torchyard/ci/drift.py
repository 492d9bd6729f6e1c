"""Compare a provider's file with the generated one."""

from difflib import unified_diff
from enum import StrEnum

from torchyard.ci.yaml import read_header
from torchyard.model.values import Reported
from torchyard.version import __version__


class FileState(StrEnum):
    """How a provider's file compares with the generated one."""

    CURRENT = "current"
    MISSING = "missing"
    EDITED = "edited"
    OTHER_VERSION = "other-version"
    OUTDATED = "outdated"
    LEFT_OVER = "left-over"
    FOREIGN = "foreign"


GUARDED = (FileState.FOREIGN, FileState.EDITED)
"""States of files with contents that overwriting would lose."""

_REASONS = {
    FileState.CURRENT: "is current",
    FileState.MISSING: "is missing",
    FileState.EDITED: "was edited by hand",
    FileState.OTHER_VERSION: "was written by another version of torchyard",
    FileState.OUTDATED: "is older than the matrix or [ci] in the configuration",
    FileState.LEFT_OVER: "belongs to a pipeline that no longer exists",
    FileState.FOREIGN: "was not written by torchyard",
}


class ComparedFile(Reported):
    """A provider's file: its path in the repository, its state, and its generated text.

    `diff` leads from the existing text to `text`.
    """

    provider: str
    path: str
    state: FileState
    text: str = ""
    diff: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why the file differs, as the rest of a sentence."""
        return _REASONS[self.state]


def compare_file(provider: str, path: str, old: str | None, text: str) -> ComparedFile:
    """Compare the text of a file, or None if it is missing, with the generated text."""
    if old is None or old == text:
        state = FileState.MISSING if old is None else FileState.CURRENT
        return ComparedFile(provider, path, state, text)
    header = read_header(old)
    if header is None:
        state = FileState.FOREIGN
    elif header.is_edited:
        state = FileState.EDITED
    elif header.version != __version__:
        state = FileState.OTHER_VERSION
    else:
        state = FileState.OUTDATED
    lines = (old.splitlines(), text.splitlines())
    diff = unified_diff(*lines, f"{path} (there)", f"{path} (generated)", lineterm="")
    return ComparedFile(provider, path, state, text, tuple(diff))
