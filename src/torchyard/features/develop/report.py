"""A tree to develop in, and what was made in it."""

import shlex
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.run.development import MadeFile, MadeKind, OpenDevelopment
from torchyard.terminal.tables import Lines, and_more, folded, indented, styled, table, word
from torchyard.toolchain.activation import own_shell

_LISTED = 10
"""How many files are listed that were made for the same reason."""


class DevelopReport(Reported, kw_only=True):
    """`torchyard develop build --json`."""

    version: Literal[1] = 1
    cell: str
    tree: str
    seconds: float
    made: Sequence[MadeFile]


class DevelopStart(NamedTuple):
    """A development that was set up: what was made for it, and what of the core again."""

    development: OpenDevelopment
    made: Sequence[MadeFile] = ()
    again: Sequence[MadeFile] = ()

    @property
    def script(self) -> Path:
        """The script to source in the caller's shell; there is none for a root."""
        return self.development.workdir.folder / f"activate.{own_shell()}"


def start_text(begun: DevelopStart) -> Lines:
    """Show where a tree is, what was compiled for it, and how one works in it."""
    again, units = len(begun.again), _count(begun.made, MadeKind.UNIT)
    rows = [
        ("tree", str(begun.development.tree)),
        ("units of the core that were compiled", str(again)),
    ]
    if begun.made:
        rows.append(("other units that were compiled", str(units - again)))
    rows += [("after edits", "torchyard develop build"), ("in its view", "torchyard develop run")]
    if begun.script.exists():
        rows.append(("in a shell", f"source {shlex.quote(str(begun.script))}"))
    yield styled(begun.development.record.cell, "bold")
    yield ""
    yield table((word(), folded()), rows, header=False)
    yield from (indented(f"{one.output}: {one.why}", 2) for one in begun.again[:_LISTED])
    yield from and_more(again - _LISTED, 2)


def develop_build_text(report: DevelopReport) -> Lines:
    """Show what ninja made and why: units by their reason, then what is linked from them."""
    if not report.made:
        yield styled(f"nothing to do in {report.tree} ({report.seconds:.1f} s)")
        return
    causes = sorted((one for one in report.made if one.why), key=lambda one: one.why)
    for why, group in groupby(causes, key=lambda one: one.why):
        made = list(group)
        yield styled(why, "bold")
        yield from (indented(one.output, 2) for one in made[:_LISTED])
        yield from and_more(len(made) - _LISTED, 2)
    counts = [
        show_count(count, noun)
        for kind, noun in (
            (MadeKind.UNIT, "unit"),
            (MadeKind.LIBRARY, "linked file"),
            (MadeKind.OTHER, "other file"),
        )
        if (count := _count(report.made, kind))
    ]
    yield styled(f"made {', '.join(counts)} in {report.seconds:.1f} s")


def _count(made: Sequence[MadeFile], kind: MadeKind) -> int:
    return sum(one.kind is kind for one in made)
