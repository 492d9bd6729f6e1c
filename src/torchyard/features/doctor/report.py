"""Findings on a machine."""

from collections.abc import Iterable, Iterator

from torchyard.doctor.check import MachineFinding
from torchyard.engines.admission import Examination
from torchyard.errors import HostError
from torchyard.model.quantity import show_count
from torchyard.model.severity import Severity
from torchyard.terminal.tables import (
    STYLES,
    Lines,
    assembled,
    folded,
    styled,
    table,
    verbatim,
    word,
)
from torchyard.terminal.untrusted import printable


def doctor_error(report: Examination) -> HostError | None:
    if not report.errors:
        return None
    msg = f"the machine is not ready: {show_count(len(report.errors), 'error')}"
    return HostError(msg, hint="run the commands above, and try again")


def doctor_text(report: Examination) -> Lines:
    """Show sightings, problems with reasons, a verdict, and commands to run."""
    yield assembled(("for ", "dim"), printable(report.title))
    yield ""
    seen = (
        iter((styled("ok", "green"), fact.check, styled(printable(fact.what))))
        for fact in report.seen
    )
    yield from _rows(seen)
    if report.findings:
        yield ""
        yield from _rows(map(_row, report.findings))
    yield ""
    yield from _verdict(report)
    yield from map(verbatim, cure_lines(report))


def _rows(rows: Iterable[Lines]) -> Lines:
    yield table((word(), word(), folded()), rows, header=False, tight=True)


def _row(finding: MachineFinding) -> Lines:
    yield styled(finding.severity, STYLES[finding.severity])
    yield finding.check
    yield assembled(printable(finding.what), "\n", (printable(finding.why), "dim"))


def _verdict(report: Examination) -> Lines:
    warnings = sum(finding.severity is Severity.WARNING for finding in report.findings)
    if report.errors:
        count = show_count(len(report.errors), "error")
        yield styled(f"{count}: the build fails", "bold red")
    elif warnings:
        yield styled(f"it can be built; {show_count(warnings, 'warning')}", "yellow")
    else:
        yield styled("it can be built", "bold green")


def cure_lines(report: Examination) -> Iterator[str]:
    """Yield the commands that fix the findings, with their checks.

    Commands that change the system come last, under a separate heading.
    """
    for system, heading in ((False, "to fix it:"), (True, "to fix it for the whole machine:")):
        checks: dict[str, list[str]] = {}
        for finding in report.findings:
            if finding.cure and finding.system == system:
                checks.setdefault(finding.cure, []).append(finding.check)
        if checks:
            yield heading
        for cure, names in checks.items():
            yield f"{cure}  # {', '.join(dict.fromkeys(names))}"
