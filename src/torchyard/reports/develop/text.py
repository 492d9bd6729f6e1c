"""A tree to develop in, and what was made in it, for people."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.model.quantity import show_count
from torchyard.reports.develop.document import DevelopDocument, MadeDocument, MadeKind
from torchyard.run.development import MadeFile, OpenDevelopment
from torchyard.terminal.tables import and_more, folded, indented, table, word
from torchyard.toolchain.ninja import is_unit

_LISTED = 10
"""How many files are listed that were made for the same reason."""


def start_report(
    development: OpenDevelopment, made: Sequence[MadeFile], again: Sequence[MadeFile], script: Path
) -> RenderableType:
    """Show where a tree is, what was compiled for it, and how one works in it."""
    record, units = development.record, [one for one in made if is_unit(one.output)]
    rows = [
        ("tree", str(development.tree)),
        ("units of the core that were compiled", str(len(again))),
    ]
    if made:
        rows.append(("other units that were compiled", str(len(units) - len(again))))
    rows += [("after edits", "torchyard develop build"), ("in its view", "torchyard develop run")]
    if script.exists():
        rows.append(("in a shell", f"source {shlex.quote(str(script))}"))
    parts: list[RenderableType] = [Text(record.cell, style="bold"), ""]
    parts.append(table((word(), folded()), rows, header=False))
    parts += [indented(f"{one.output}: {one.why}", 2) for one in again[:_LISTED]]
    return Group(*parts, *and_more(len(again) - _LISTED, 2))


def develop_report(document: DevelopDocument) -> RenderableType:
    """Show what ninja made and why: units by their reason, then what is linked from them."""
    if not document.made:
        return Text(f"nothing to do in {document.tree} ({document.seconds:.1f} s)")
    return Group(*_lines(document))


def _lines(document: DevelopDocument) -> Iterator[RenderableType]:
    causes = sorted((one for one in document.made if one.why), key=lambda one: one.why)
    for why, group in groupby(causes, key=lambda one: one.why):
        made = list(group)
        yield Text(why, style="bold")
        yield from (indented(one.output, 2) for one in made[:_LISTED])
        yield from and_more(len(made) - _LISTED, 2)
    counts = [
        show_count(count, noun)
        for kind, noun in (
            (MadeKind.UNIT, "unit"),
            (MadeKind.LIBRARY, "linked file"),
            (MadeKind.OTHER, "other file"),
        )
        if (count := _count(document.made, kind))
    ]
    yield Text(f"made {', '.join(counts)} in {document.seconds:.1f} s")


def _count(made: Sequence[MadeDocument], kind: MadeKind) -> int:
    return sum(one.kind is kind for one in made)
