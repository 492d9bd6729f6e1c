"""What a channel knows of a file, and of all files that share pages."""

from collections.abc import Callable, Iterable
from itertools import takewhile
from operator import attrgetter, is_
from typing import Literal

import msgspec

from torchyard.model.identifier import Cell, parse
from torchyard.model.values import Value

WHOLE = "simple"
"""The view that has the files of all variants."""

SHARED = ""
"""The variant of a file that fits all of them, such as one of pure Python."""

_LONGEST = 240  # bytes; most systems allow 255, and `.provenance` has eleven

Status = Literal["active", "archived", "quarantined", "deprecated"]
"""What PEP 792 says of a project: whether it gets new files, and whether it has any to offer."""


class Entry(Value, kw_only=True, array_like=True, gc=False):
    """A published file. It is written as an array: a channel may have millions."""

    file: str
    version: str
    """Of the project, with its local part: `2.14.0+cu130`."""
    variant: str
    sha256: str
    size: int
    uploaded: str
    """When it was first published here: `2026-11-15T14:20:00Z`."""
    requires_python: str = ""
    metadata: str = ""
    """The sha256 of its METADATA, which is beside a wheel as `FILE.metadata`."""
    yanked: str | None = None
    """Why nobody should take it any more; the reason may be empty."""
    provenance: bool = False
    """Whether there is a `FILE.provenance` beside it (PEP 740)."""
    cell: str = ""
    """The cell of the plan that it was built for; nothing for files from elsewhere."""
    commit: str = ""
    promoted: str = ""
    """The sha256 of the file that this one is a promotion of, if the bytes had to change."""
    record: msgspec.Raw = msgspec.Raw(b"null")
    """Of a conda package: what `repodata.json` says of it."""


order_of: Callable[[Entry], tuple[str, str]] = attrgetter("file", "variant")
"""Where an entry stands among others."""


class Hidden(Value, kw_only=True, array_like=True):
    """A file that no page names any more, and since when."""

    entry: Entry
    since: str


class State(Value, kw_only=True):
    """All that the pages of a project, of a conda subdir or of a listing are made of."""

    version: Literal[1] = 1
    status: Status = "active"
    status_reason: str = ""
    entries: tuple[Entry, ...] = ()
    """In the order of their file names, then of their variants."""
    hidden: tuple[Hidden, ...] = ()
    pending_deletion: tuple[str, ...] = msgspec.field(name="doomed", default=())
    """Keys that are being deleted: they can't be published until that is done."""
    serials: dict[str, int] = {}
    """For each view (variant, or `WHOLE`) the generation of the channel that changed it last."""
    shards: dict[str, str] = {}
    """Of a conda subdir: for each name of a package, the sha256 of its shard."""
    tags: dict[str, str] = {}
    """For each page its tag, as a server should tell it."""
    run: str = ""
    """Unique for each try: no state that a dead writer left, and another deletes, comes again."""


def is_file_name(name: str) -> bool:
    """Whether a file can be called this in any directory, with room for what lies beside it."""
    is_plain = name.isprintable() and not {"/", "\\"} & set(name)
    return is_plain and name not in ("", ".", "..") and len(name.encode()) <= _LONGEST


def package_key(sha256: str, file: str) -> str:
    """Where the bytes of a wheel or a zip are. No other bytes can ever be there."""
    return f"packages/{sha256[:2]}/{sha256[2:]}/{file}"


def changed(old: State, new: State) -> list[Entry]:
    """The entries that only one of two states has. Entries that were kept are the same objects."""
    start = _alike(old.entries, new.entries)
    gone, came = old.entries[start:], new.entries[start:]
    end = _alike(reversed(gone), reversed(came))
    gone, came = gone[: len(gone) - end], came[: len(came) - end]
    differing = set(map(id, gone)) ^ set(map(id, came))
    return [entry for entry in (*gone, *came) if id(entry) in differing]


def _alike(some: Iterable[Entry], others: Iterable[Entry]) -> int:
    """How many entries are the same at the beginning."""
    return sum(1 for _ in takewhile(bool, map(is_, some, others)))


def in_view(state: State, view: str) -> list[Entry]:
    """The entries that a view shows: in the whole, the first of those with one name."""
    if view == WHOLE:
        return list({entry.file: entry for entry in reversed(state.entries)}.values())[::-1]
    return [entry for entry in state.entries if entry.variant in (view, SHARED)]


def cell_of(entry: Entry) -> Cell | None:
    """The cell that a file was built for, if torchyard built it."""
    return Cell.from_path(parse(entry.cell).path) if entry.cell else None
