"""The package that fits a machine, for people."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from torchyard.model.quantity import show_size
from torchyard.reports.which.document import OtherDocument, WhichDocument, gpu_facts
from torchyard.terminal.tables import number, table
from torchyard.terminal.untrusted import printable


def which_report(document: WhichDocument) -> RenderableType:
    """Show the machine, why other packages do not fit it, and the one that does."""
    machine = Text.assemble(("for ", "dim"), ", ".join(_machine(document)))
    parts: list[RenderableType] = [machine, ""]
    if document.others:
        parts += [_others(document.others), ""]
    for note in document.notes:
        parts += [Text.assemble(("note: ", "cyan"), printable(note)), ""]
    choice = document.choice
    if choice:
        size = show_size(choice.size)
        parts.append(Text.assemble((choice.file, "bold green"), f" ({size})", overflow="fold"))
    else:
        parts.append(Text(f"no {document.kind} of {document.project} fits", style="bold red"))
    return Group(*parts)


def _machine(document: WhichDocument) -> Iterator[str]:
    facts = document.facts
    yield facts.python
    yield facts.platform
    if facts.glibc:
        yield f"glibc {facts.glibc}"
    yield from gpu_facts(document) or ["no GPU"]
    if facts.torch:
        yield f"torch {facts.torch}" + (
            f" for {facts.torch_compute}" if facts.torch_compute else ""
        )


def _others(others: list[OtherDocument]) -> Table:
    groups: dict[str, list[OtherDocument]] = {}
    for other in others:
        groups.setdefault(other.why, []).append(other)
    reason, example = Column("because it", ratio=2), Column("such as", overflow="fold", ratio=3)
    return table(
        (number("not"), reason, example),
        (
            (f"{len(group):,}", Text(printable(why)), Text(group[-1].file))
            for why, group in groups.items()
        ),
    )
