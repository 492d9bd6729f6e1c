"""The package that fits a machine, and reasons against others."""

from collections.abc import Iterator, Sequence
from typing import Literal

from torchyard.compute.registry import machine_facts
from torchyard.errors import SelectionError
from torchyard.model.quantity import show_size
from torchyard.model.values import Reported
from torchyard.publish.resolve.compatibility import MachineFacts
from torchyard.terminal.tables import (
    Lines,
    assembled,
    folded,
    number,
    styled,
    table,
    verbatim,
    wrapped,
)
from torchyard.terminal.untrusted import printable


class ChosenPackage(Reported, kw_only=True):
    """The package to install."""

    file: str
    version: str
    variant: str
    sha256: str
    size: int
    commands: dict[str, str]


class OtherPackage(Reported, kw_only=True):
    """Another package, and the reason against it."""

    file: str
    version: str
    variant: str
    reason: str
    why: str


class WhichReport(Reported, kw_only=True):
    """`torchyard which --json`: the package that fits, and reasons against others.

    `torches` are the torches of packages, if none is for the machine's.
    """

    version: Literal[1] = 1
    channel: str
    project: str
    kind: str
    facts: MachineFacts
    choice: ChosenPackage | None
    others: list[OtherPackage]
    notes: Sequence[str]
    torches: list[str]
    torch_command: str


def which_text(report: WhichReport) -> Lines:
    """Show the machine, reasons against other packages, and the one that fits."""
    yield assembled(("for ", "dim"), ", ".join(_machine(report.facts)))
    yield ""
    if report.others:
        yield from _others(report.others)
        yield ""
    for note in report.notes:
        yield assembled(("note: ", "cyan"), printable(note))
        yield ""
    choice = report.choice
    if choice is None:
        yield styled(f"no {report.kind} of {report.project} fits", "bold red")
        return
    yield assembled((choice.file, "bold green"), f" ({show_size(choice.size)})")
    yield from map(verbatim, choice.commands.values())


def which_error(report: WhichReport) -> SelectionError | None:
    facts = report.facts
    if report.torches:
        own = f"torch {facts.torch}"
        own += f" for {facts.torch_compute}" if facts.torch_compute else ""
        there = ", ".join(report.torches)
        what = f"no {report.kind} of `{report.project}` is for {own}"
        hint = (
            f"install one of these, by `{report.torch_command}` for instance; or build it for "
            "yours, by `torchyard build here` in a directory with its torchyard.toml"
        )
        return SelectionError(f"{what}; there are some for torch {there}", hint=hint)
    if report.choice is None:
        msg = f"no {report.kind} of `{report.project}` in the channel fits"
        return SelectionError(msg, hint="other facts may: see `torchyard which --help`")
    return None


def _machine(facts: MachineFacts) -> Iterator[str]:
    yield facts.python
    yield facts.platform
    if facts.glibc:
        yield f"glibc {facts.glibc}"
    known = [(fact, facts.gpu[fact.option]) for fact in machine_facts() if fact.option in facts.gpu]
    gpus = [f.title if f.is_flag else f"{f.title} {value}" for f, value in known if value]
    yield from gpus or ["no GPU"]
    if facts.torch:
        yield f"torch {facts.torch}" + (
            f" for {facts.torch_compute}" if facts.torch_compute else ""
        )


def _others(others: list[OtherPackage]) -> Lines:
    groups: dict[str, list[OtherPackage]] = {}
    for other in others:
        groups.setdefault(other.why, []).append(other)
    yield table(
        (number("not"), wrapped("because it", ratio=2), folded("such as", ratio=3)),
        (
            (f"{len(group):,}", styled(printable(why)), styled(group[-1].file))
            for why, group in groups.items()
        ),
    )
