"""What was found on a machine, for people."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.doctor.check import MachineFinding
from torchyard.model.quantity import show_count
from torchyard.model.severity import Severity
from torchyard.reports.doctor.document import DoctorDocument
from torchyard.terminal.tables import STYLES, folded, table, word
from torchyard.terminal.untrusted import printable


def doctor_report(document: DoctorDocument) -> RenderableType:
    """Show what was seen, what is wrong and why that matters, and a verdict."""
    title = Text.assemble(("for ", "dim"), printable(document.title), overflow="fold")
    seen = ((Text("ok", "green"), one.check, Text(printable(one.what))) for one in document.seen)
    parts: list[RenderableType] = [title, "", _rows([*seen])]
    if document.findings:
        parts += ["", _rows([_row(one) for one in document.findings])]
    return Group(*parts, "", _verdict(document))


def _rows(rows: list[tuple[RenderableType, ...]]) -> RenderableType:
    return table((word(), word(), folded()), rows, header=False, tight=True)


def _row(one: MachineFinding) -> tuple[RenderableType, ...]:
    said = Text.assemble(printable(one.what), "\n", (printable(one.why), "dim"))
    return Text(one.severity, STYLES[one.severity]), one.check, said


def _verdict(document: DoctorDocument) -> Text:
    if document.errors:
        return Text(f"{show_count(document.errors, 'error')}: the build fails", style="bold red")
    warnings = sum(one.severity is Severity.WARNING for one in document.findings)
    if warnings:
        return Text(f"it can be built; {show_count(warnings, 'warning')}", style="yellow")
    return Text("it can be built", style="bold green")


def cure_lines(document: DoctorDocument) -> Iterator[str]:
    """Yield the commands that mend what was found, each with the checks it is for.

    Those that change the system come last, under a heading of their own.
    """
    for system, heading in ((False, "to mend it:"), (True, "to mend it, for all of this machine:")):
        checks: dict[str, list[str]] = {}
        for one in document.findings:
            if one.cure and one.system == system:
                checks.setdefault(one.cure, []).append(one.check)
        if checks:
            yield heading
        for cure, names in checks.items():
            yield f"{cure}  # {', '.join(dict.fromkeys(names))}"
