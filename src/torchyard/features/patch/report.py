"""Corrections of conda packages in a channel, and what solvers make of them."""

from typing import Literal

from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, folded, number, styled, table
from torchyard.terminal.untrusted import neutral, printable


class CorrectedFile(Reported, kw_only=True):
    """A conda package whose record was corrected: what was removed from a field, and added."""

    part: str
    file: str
    field: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


class SolverAnswer(Reported, kw_only=True):
    """The packages that a solver chose, by name, or why there are none."""

    packages: dict[str, str]
    error: str = ""


class Solved(Reported, kw_only=True):
    """A solver's answers before and after a correction."""

    spec: str
    before: SolverAnswer
    after: SolverAnswer


class PatchReport(Reported, kw_only=True):
    """`torchyard channel patch --json`: what was corrected, or with `dry_run` would be."""

    version: Literal[1] = 1
    channel: str
    generation: int
    dry_run: bool
    files: list[CorrectedFile]
    solved: list[Solved]


def channel_patch_text(report: PatchReport) -> Lines:
    """Show corrections, each with the number of its files, and what a solver chooses."""
    rows: dict[tuple[str, str, str, str], int] = {}
    for file in report.files:
        removed, added = (printable(", ".join(specs)) for specs in (file.removed, file.added))
        key = (file.part, file.field, removed, added)
        rows[key] = rows.get(key, 0) + 1
    if rows:
        columns = (*map(folded, ("part", "field", "removed", "added")), number("files"))
        yield table(columns, ((*row, str(count)) for row, count in rows.items()), tight=True)
        yield ""
    for solved in report.solved:
        yield from _solved(solved)
    count = show_count(len({(file.part, file.file) for file in report.files}), "file")
    did = "would be " if report.dry_run else ""
    yield styled(f"{report.channel}: generation {report.generation}, {count} {did}corrected")


def _solved(solved: Solved) -> Lines:
    yield styled(f"`{solved.spec}` is solved by", "bold")
    old, new = solved.before.packages, solved.after.packages
    names = sorted(old.keys() | new.keys())
    rows = [tuple(map(printable, (n, old.get(n, "-"), new.get(n, "-")))) for n in names]
    differing = [row for row in rows if row[1] != row[2]]
    if differing:
        yield table(tuple(map(folded, ("package", "before", "after"))), differing, tight=True)
    for when, answer in (("before", solved.before), ("after", solved.after)):
        if answer.error:
            yield styled(neutral(f"{when}: {answer.error}"))
    if solved.before == solved.after:
        yield styled("the same packages as before")
    yield ""
