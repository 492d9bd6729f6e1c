"""Published files, and the state from which their pages are generated."""

from collections.abc import Callable, Iterable
from itertools import takewhile
from operator import attrgetter, is_
from typing import Literal

import msgspec

from torchyard.model.identifier import Cell, parse
from torchyard.model.values import Value

WHOLE = "simple"
"""The view with the files of all variants."""

SHARED = ""
"""The variant of a file that fits all of them, such as a pure Python wheel."""

NOT_PATCHED = msgspec.Raw(b"null")
"""The patch of an entry whose record was not corrected."""

_LONGEST = 240  # bytes; most systems allow 255, and `.provenance` has eleven

Status = Literal["active", "archived", "quarantined", "deprecated"]
"""The status of a project (PEP 792): whether it gets new files, and whether it offers files."""


class Entry(Value, kw_only=True, array_like=True, gc=False):
    """A published file, encoded as an array, as a channel may have millions."""

    file: str
    version: str
    """The version of the project, with its local part: `2.14.0+cu130`."""
    variant: str
    sha256: str
    size: int
    uploaded: str
    """When it was first published here: `2026-11-15T14:20:00Z`."""
    requires_python: str = ""
    metadata: str = ""
    """The sha256 of its METADATA, which is published with a wheel as `FILE.metadata`."""
    yanked: str | None = None
    """Why the file is yanked; the reason may be empty."""
    provenance: bool = False
    """Whether there is a `FILE.provenance` (PEP 740)."""
    cell: str = ""
    """The cell of the plan that it was built for; empty for files from elsewhere."""
    commit: str = ""
    promoted: str = ""
    """The sha256 of the file that was promoted, if its bytes had to change."""
    record: msgspec.Raw = msgspec.Raw(b"null")
    """The record of a conda package in `repodata.json`."""
    overrides: tuple[tuple[str, str], ...] = ()
    """The gates that were overridden, each with the reason."""
    torch: str = ""
    """The versions of torch that it requires, such as `==2.13.*`; empty for any, or no torch."""
    patch: msgspec.Raw = NOT_PATCHED
    """The fields of a conda package's record that were corrected: a `RecordPatch`."""


sort_key: Callable[[Entry], tuple[str, str]] = attrgetter("file", "variant")
"""The sort key of an entry."""


class Hidden(Value, kw_only=True, array_like=True):
    """A file that is no longer on any page, and since when."""

    entry: Entry
    since: str


class State(Value, kw_only=True):
    """The state from which the pages of a project, a conda subdir or a listing are generated."""

    version: Literal[1] = 1
    status: Status = "active"
    status_reason: str = ""
    entries: tuple[Entry, ...] = ()
    """Sorted by file name, then by variant."""
    hidden: tuple[Hidden, ...] = ()
    pending_deletion: tuple[str, ...] = msgspec.field(name="doomed", default=())
    """Keys under deletion, which can't be published until it is done."""
    serials: dict[str, int] = {}
    """The channel generation that last changed each view (a variant, or `WHOLE`)."""
    shards: dict[str, str] = {}
    """The sha256 of the shard of each package name, in a conda subdir."""
    tags: dict[str, str] = {}
    """The expected ETag of each page."""
    run: str = ""
    """Unique per attempt, so that no state equals one that a dead writer marked for deletion."""


def is_file_name(name: str) -> bool:
    """Return whether a file name is valid anywhere, with room for a suffix (`.metadata`)."""
    is_plain = name.isprintable() and not {"/", "\\"} & set(name)
    return is_plain and name not in ("", ".", "..") and len(name.encode()) <= _LONGEST


def package_key(sha256: str, file: str) -> str:
    """Return the key of a wheel or a zip, which depends on its content."""
    return f"packages/{sha256[:2]}/{sha256[2:]}/{file}"


def changed(old: State, new: State) -> list[Entry]:
    """Return the entries in only one of two states. Unchanged entries are the same objects."""
    start = _alike(old.entries, new.entries)
    gone, came = old.entries[start:], new.entries[start:]
    end = _alike(reversed(gone), reversed(came))
    gone, came = gone[: len(gone) - end], came[: len(came) - end]
    differing = set(map(id, gone)) ^ set(map(id, came))
    return [entry for entry in (*gone, *came) if id(entry) in differing]


def _alike(entries: Iterable[Entry], others: Iterable[Entry]) -> int:
    """Return the length of the common prefix."""
    return sum(1 for _ in takewhile(bool, map(is_, entries, others)))


def cell_of(entry: Entry) -> Cell | None:
    """Return the cell that a file was built for, if torchyard built it."""
    return Cell.from_path(parse(entry.cell).path) if entry.cell else None
