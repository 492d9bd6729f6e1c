"""What was found on a machine."""

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
    return HostError(msg, hint="type the commands above, and run it again")


def doctor_text(report: Examination) -> Lines:
    """Show what was seen, what is wrong and why that matters, a verdict, and what to type."""
    yield assembled(("for ", "dim"), printable(report.title))
    yield ""
    seen = (
        iter((styled("ok", "green"), one.check, styled(printable(one.what)))) for one in report.seen
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


def _row(one: MachineFinding) -> Lines:
    yield styled(one.severity, STYLES[one.severity])
    yield one.check
    yield assembled(printable(one.what), "\n", (printable(one.why), "dim"))


def _verdict(report: Examination) -> Lines:
    warnings = sum(one.severity is Severity.WARNING for one in report.findings)
    if report.errors:
        count = show_count(len(report.errors), "error")
        yield styled(f"{count}: the build fails", "bold red")
    elif warnings:
        yield styled(f"it can be built; {show_count(warnings, 'warning')}", "yellow")
    else:
        yield styled("it can be built", "bold green")


def cure_lines(report: Examination) -> Iterator[str]:
    """Yield the commands that mend what was found, each with the checks it is for.

    Those that change the system come last, under a heading of their own.
    """
    for system, heading in ((False, "to mend it:"), (True, "to mend it, for all of this machine:")):
        checks: dict[str, list[str]] = {}
        for one in report.findings:
            if one.cure and one.system == system:
                checks.setdefault(one.cure, []).append(one.check)
        if checks:
            yield heading
        for cure, names in checks.items():
            yield f"{cure}  # {', '.join(dict.fromkeys(names))}"
