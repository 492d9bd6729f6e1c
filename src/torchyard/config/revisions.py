"""Configurations for comparisons: other files, or older revisions of the same file."""

from collections.abc import Sequence

from torchyard.config.document import Document
from torchyard.config.load import config_of
from torchyard.config.lock import build_lock_path, parse_build_lock
from torchyard.errors import HostError, UsageError
from torchyard.host.files import exists, isdir, read_text
from torchyard.host.git import file_at
from torchyard.model.config import Config
from torchyard.model.lock import BuildLock


def load_config_at(name: str, path: str, *, others: Sequence[str] = ()) -> Config:
    """Return the config of `name`: a file if it exists, else that git revision of `path`.

    `REVISION:PATH` names a file at another path. Origins include the revision, so that
    old and new lines can be told apart. A source directory is always read in its current state.
    """
    if not name:
        msg = "an empty name is neither a file nor a git revision"
        raise UsageError(msg)
    if exists(name) and not isdir(name):
        return config_of(name, Document(name, read_text(name)), others=others)
    shown = name if ":" in name else f"{name}:{path}"
    document = Document(shown, file_at(name, path))
    return config_of(path, document, others=others, lock=_lock_at(name, path))


def _lock_at(revision: str, path: str) -> BuildLock:
    """Return the lock of a file at a git revision; an empty one if there was none."""
    name = build_lock_path(revision) if ":" in revision else revision
    try:
        text = file_at(name, build_lock_path(path))
    except HostError:
        return BuildLock()
    return parse_build_lock(text, f"{build_lock_path(path)} at {revision}")
