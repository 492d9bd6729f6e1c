"""The files of another index, and their results."""

from collections.abc import Mapping
from typing import Literal

from torchyard.model.quantity import show_count, show_size
from torchyard.model.values import Reported
from torchyard.publish.mirror.mirror import Fate
from torchyard.terminal.tables import Lines, folded, number, styled, table, word
from torchyard.terminal.untrusted import printable

_DONE: Mapping[Fate, str] = {"new": "fetched", "sent": "published", "there": "was there"}
_TO_DO: Mapping[Fate, str] = {"new": "to fetch", "sent": "to publish", "there": "is there"}


class MirroredFile(Reported, kw_only=True):
    """A file: `new` ones are fetched, `sent` ones are from an earlier run."""

    project: str
    file: str
    release: str
    variant: str
    bytes: int | None
    fate: Fate
    yanked: bool


class MirrorReport(Reported, kw_only=True):
    """`torchyard channel mirror --json`; the channel's generation is 0 if nothing was done."""

    version: Literal[1] = 1
    source: str
    channel: str
    generation: int
    notes: list[str]
    files: list[MirroredFile]


def channel_mirror_text(report: MirrorReport) -> Lines:
    """Show each file with its action, and a summary."""
    words = _DONE if report.generation else _TO_DO
    rows = (
        (
            printable(file.file),
            file.variant or "all",
            "?" if file.bytes is None else show_size(file.bytes),
            f"{words[file.fate]}{', yanked' if file.yanked else ''}",
        )
        for file in report.files
    )
    yield table((folded("file"), word("variant"), number("size"), word()), rows)
    yield ""
    fetched = [file for file in report.files if file.fate == "new"]
    size = show_size(sum(file.bytes or 0 for file in fetched))
    done = f"generation {report.generation}" if report.generation else "nothing is done yet"
    count = show_count(len(report.files), "file")
    yield f"{done}: {count}, {len(fetched)} {words['new']} ({size})"
    for note in report.notes:
        yield styled(f"note: {printable(note)}")
