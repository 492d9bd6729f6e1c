"""A tree to develop in, and the files made in it."""

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
"""The most files to list for the same reason."""


class DevelopReport(Reported, kw_only=True):
    """`torchyard develop build --json`."""

    version: Literal[1] = 1
    cell: str
    tree: str
    seconds: float
    made: Sequence[MadeFile]


class DevelopStart(NamedTuple):
    """A new development: the files made for it, and those of the core made again."""

    development: OpenDevelopment
    made: Sequence[MadeFile] = ()
    again: Sequence[MadeFile] = ()

    @property
    def script(self) -> Path:
        """The script to source in the caller's shell, or None for a root."""
        return self.development.workdir.folder / f"activate.{own_shell()}"


def start_text(begun: DevelopStart) -> Lines:
    """Show a tree's path, what was compiled for it, and how to work in it."""
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
    yield from (indented(f"{path.output}: {path.why}", 2) for path in begun.again[:_LISTED])
    yield from and_more(again - _LISTED, 2)


def develop_build_text(report: DevelopReport) -> Lines:
    """Show ninja's outputs and reasons: units by reason, then files linked from them."""
    if not report.made:
        yield styled(f"nothing to do in {report.tree} ({report.seconds:.1f} s)")
        return
    causes = sorted((file for file in report.made if file.why), key=lambda file: file.why)
    for why, group in groupby(causes, key=lambda file: file.why):
        made = list(group)
        yield styled(why, "bold")
        yield from (indented(file.output, 2) for file in made[:_LISTED])
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
    return sum(file.kind is kind for file in made)
