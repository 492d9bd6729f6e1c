"""Whether packages can be installed, and work."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

from torchyard.errors import ElsewhereError, HostError, SmokeError, TorchyardError
from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.package.formats import FORMATS
from torchyard.smoke.outcome import Outcome, SmokeAttempt, Smoked
from torchyard.terminal.tables import (
    Lines,
    assembled,
    folded,
    indented,
    number,
    styled,
    table,
    word,
)

if TYPE_CHECKING:  # slow to import
    from rich.table import Table
    from rich.text import Text

_STYLES = {
    Outcome.PASSED: "green",
    Outcome.KNOWN: "yellow",
    Outcome.NOT_RUN: "yellow",
    Outcome.NOT_DECIDED: "yellow",
}
_BAD = "bold red"
_BEFORE_TESTS = {"install", "requirements"}
_DULL = re.compile(r"^\s*[~^]*\s*$|<frozen importlib")
"""Lines of Python's tracebacks to omit."""

_SHOWN = 12
"""The most lines to show from the end of a failed test's output; `--json` has more."""


class SmokeReport(Reported, kw_only=True):
    """`torchyard smoke --json`."""

    version: Literal[1] = 1
    level: str
    works: bool
    outcomes: dict[str, int]
    packages: Sequence[Smoked]

    @classmethod
    def of(cls, packages: Sequence[Smoked], level: str) -> Self:
        """Return the report of packages; those that could not be tested do not count."""
        tried = [package for package in packages if package.tried]
        counted = Counter(a.outcome for p in packages for run in p.runs for a in run.attempts)
        return cls(
            level=level,
            works=bool(tried) and all(package.works for package in tried),
            outcomes={outcome.value: counted[outcome] for outcome in Outcome},
            packages=packages,
        )


def smoke_error(report: SmokeReport, *, every: bool = False) -> TorchyardError | None:
    """Return why the command fails: a package does not work, or none (or not `every`) ran.

    A test that was ended because the machine was too busy may pass later.
    """
    idle = [package.file for package in report.packages if not package.tried]
    failed = [p.file for p in report.packages if p.tried and p.decided and not p.works]
    undecided = [package.file for package in report.packages if not package.decided]
    if failed:
        msg = f"{', '.join(failed)} {'do' if len(failed) > 1 else 'does'} not work"
        return SmokeError(msg, hint="the report above has the output of each test")
    if undecided:
        msg = f"it is not decided whether {', '.join(undecided)} can be used: the machine is busy"
        hint = "try again when it has less to do, or give tests more time by --timeout"
        return ElsewhereError(msg, hint=hint)
    if idle and (every or len(idle) == len(report.packages)):
        msg = f"{', '.join(idle)} can't be tried here"
        hint = "install a Python that fits, or give it by --python; the system has to fit, too"
        return HostError(msg, hint=hint)
    return None


def smoke_text(report: SmokeReport) -> Lines:
    """Show a table of tests for each package, the causes of failures, and a verdict."""
    for package in report.packages:
        yield from _package(package)
        yield ""
    tried = [package for package in report.packages if package.tried]
    verdict = "nothing could be tried"
    if len(report.packages) > 1 and tried:
        works = sum(package.works for package in tried)
        verdict = f"{works} of {show_count(len(report.packages), 'package')} work"
        idle = len(report.packages) - len(tried)
        verdict += f", {idle} could not be tried" if idle else ""
    elif tried:
        verdict = _verdict(tried[0])
    counts = ", ".join(f"{count} {name}" for name, count in report.outcomes.items() if count)
    yield assembled((verdict, "bold green" if report.works else _BAD), f": {counts}")


def _verdict(package: Smoked) -> str:
    """Return the verdict; an installable package may still not work."""
    if not package.works:
        return "it does not work" if package.decided else "it is not decided whether it works"
    passed = {a.test for run in package.runs for a in run.attempts if a.outcome != Outcome.NOT_RUN}
    if passed <= _BEFORE_TESTS:
        done = FORMATS[package.kind].INSTALLED
        return f"it can be {done}, and nothing else was tried"
    return "it works"


def _package(package: Smoked) -> Lines:
    pythons = dict.fromkeys(f", Python {run.python}" for run in package.runs if run.python)
    yield assembled((package.file, "bold"), *pythons)
    yield ""
    yield _table(package)
    yield from _conditions(package)
    yield from _reasons(package)


def _table(package: Smoked) -> "Table":
    """Return a table with a row for each test, and a column for each run."""
    rows: dict[str, list[Text]] = {}
    for index, run in enumerate(package.runs):
        for attempt in run.attempts:
            cells = rows.setdefault(_name(attempt), [])
            cells += [styled("·")] * (index - len(cells))
            cells.append(_cell(attempt))
    return table(
        [folded("test"), *(number(f"{run.installer}\n{run.environment}") for run in package.runs)],
        (
            (name, *cells, *(["·"] * (len(package.runs) - len(cells))))
            for name, cells in rows.items()
        ),
    )


def _name(attempt: SmokeAttempt) -> str:
    return f"{attempt.test}, {attempt.variant}" if attempt.variant else attempt.test


def _cell(attempt: SmokeAttempt) -> "Text":
    """Return the time of a passed test, or the outcome of another one."""
    if attempt.outcome == Outcome.PASSED:
        return styled(f"{attempt.seconds:.1f} s", _STYLES[attempt.outcome])
    return styled(attempt.outcome, _STYLES.get(attempt.outcome, _BAD))


def _conditions(package: Smoked) -> Lines:
    """List the applied hostile conditions, and the impossible ones."""
    applied = {name: how for run in package.runs for name, how in run.applied.items()}
    missing = {name: why for run in package.runs for name, why in run.not_applied.items()}
    if not applied and not missing:
        return
    others = {n: styled(f"not applied: {why}", "yellow") for n, why in missing.items()}
    yield ""
    yield table((word("hostile"), folded("how")), (*applied.items(), *others.items()))


def _reasons(package: Smoked) -> Lines:
    """Show why tests did not run, and why others failed, with the end of their output."""
    idle: dict[str, dict[str, None]] = {}
    runs_by: dict[tuple[str, Outcome, str], list[str]] = {}
    outputs: dict[tuple[Outcome, str], str] = {}
    for run in package.runs:
        for attempt in run.attempts:
            why = attempt.why
            if attempt.outcome == Outcome.NOT_RUN:
                idle.setdefault(why, {})[_name(attempt)] = None
            elif why:
                key = (_name(attempt), attempt.outcome, why)
                runs_by.setdefault(key, []).append(f"{run.installer} {run.environment}")
                outputs.setdefault((attempt.outcome, why), attempt.output)
    for why, names in idle.items():
        yield ""
        yield assembled(("not run: ", "yellow"), f"{why}: {', '.join(names)}")
    alike: dict[tuple[Outcome, str, str], list[str]] = {}
    for (name, outcome, why), listed in runs_by.items():
        alike.setdefault((outcome, why, ", ".join(listed)), []).append(name)
    for (outcome, why, where), tests in alike.items():
        style = _STYLES.get(outcome, _BAD)
        yield ""
        yield assembled((f"{', '.join(tests)} {outcome}", style), f" ({where}): {why}")
        lines = [line for line in outputs[outcome, why].splitlines() if not _DULL.search(line)]
        if len(lines) > 1:
            yield indented(styled("\n".join(lines[-_SHOWN:]), "dim"), 4)
