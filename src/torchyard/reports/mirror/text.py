"""Mirrored files, for people."""

from collections.abc import Mapping

from rich.console import Group, RenderableType

from torchyard.model.quantity import show_count, show_size
from torchyard.publish.mirror.mirror import Fate
from torchyard.reports.mirror.document import MirrorDocument
from torchyard.terminal.tables import folded, number, table, word
from torchyard.terminal.untrusted import printable

_DONE: Mapping[Fate, str] = {"new": "fetched", "sent": "published", "there": "was there"}
_TO_DO: Mapping[Fate, str] = {"new": "to fetch", "sent": "to publish", "there": "is there"}


def mirror_report(document: MirrorDocument) -> RenderableType:
    """Each file and what was done for it, or is to be done, then all in one line."""
    words = _DONE if document.generation else _TO_DO
    files = table((folded("file"), word("variant"), number("size"), word()))
    for one in document.files:
        size = "?" if one.bytes is None else show_size(one.bytes)
        yanked = ", yanked" if one.yanked else ""
        variant = one.variant or "all"
        files.add_row(printable(one.file), variant, size, f"{words[one.fate]}{yanked}")
    fetched = [one for one in document.files if one.fate == "new"]
    size = show_size(sum(one.bytes or 0 for one in fetched))
    done = f"generation {document.generation}" if document.generation else "nothing is done yet"
    count = show_count(len(document.files), "file")
    return Group(files, "", f"{done}: {count}, {len(fetched)} {words['new']} ({size})")
