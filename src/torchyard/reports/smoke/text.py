"""Results of smoke tests, for people."""

import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.checks.smoke.outcome import Outcome
from torchyard.model.quantity import show_count
from torchyard.package.formats import FORMATS
from torchyard.reports.smoke.document import (
    AttemptDocument,
    SmokedDocument,
    SmokeDocument,
)
from torchyard.terminal.tables import folded, indented, number, table, word

_STYLES = {
    Outcome.PASSED: "green",
    Outcome.KNOWN: "yellow",
    Outcome.NOT_RUN: "yellow",
    Outcome.NOT_DECIDED: "yellow",
}
_BAD = "bold red"
_BEFORE_TESTS = {"install", "requirements"}
_DULL = re.compile(r"^\s*[~^]*\s*$|<frozen importlib")
"""Lines of Python's tracebacks that are left out."""

_SHOWN = 12
"""How many of the last lines of a failed test are shown; `--json` has more."""


def smoke_report(document: SmokeDocument) -> RenderableType:
    """Show a table of tests for each package, the causes of failures, and a verdict."""
    parts: list[RenderableType] = []
    for package in document.packages:
        parts += [*_package(package), ""]
    tried = [package for package in document.packages if package.tried]
    verdict = "nothing could be tried"
    if len(document.packages) > 1 and tried:
        works = sum(package.works for package in tried)
        verdict = f"{works} of {show_count(len(document.packages), 'package')} work"
        idle = len(document.packages) - len(tried)
        verdict += f", {idle} could not be tried" if idle else ""
    elif tried:
        verdict = _verdict(tried[0])
    counts = ", ".join(f"{count} {name}" for name, count in document.outcomes.items() if count)
    parts.append(Text.assemble((verdict, "bold green" if document.works else _BAD), f": {counts}"))
    return Group(*parts)


def _verdict(package: SmokedDocument) -> str:
    """Return the verdict; that a package can be installed does not mean that it works."""
    if not package.works:
        return "it does not work" if package.decided else "it is not decided whether it works"
    passed = {
        one.test for run in package.runs for one in run.tests if one.outcome != Outcome.NOT_RUN
    }
    if passed <= _BEFORE_TESTS:
        done = FORMATS[package.kind].INSTALLED
        return f"it can be {done}, and nothing else was tried"
    return "it works"


def _package(package: SmokedDocument) -> Iterator[RenderableType]:
    pythons = dict.fromkeys(f", Python {run.python}" for run in package.runs if run.python)
    yield Text.assemble((package.file, "bold"), *pythons)
    yield ""
    yield _table(package)
    yield from _conditions(package)
    yield from _told(package)


def _table(package: SmokedDocument) -> RenderableType:
    """A row for each test, a column for each run."""
    rows: dict[str, list[Text]] = {}
    for index, run in enumerate(package.runs):
        for one in run.tests:
            cells = rows.setdefault(_name(one), [])
            cells += [Text("·")] * (index - len(cells))
            cells.append(_cell(one))
    return table(
        [folded("test"), *(number(f"{run.installer}\n{run.environment}") for run in package.runs)],
        (
            (name, *cells, *(["·"] * (len(package.runs) - len(cells))))
            for name, cells in rows.items()
        ),
    )


def _name(one: AttemptDocument) -> str:
    return f"{one.test}, {one.variant}" if one.variant else one.test


def _cell(one: AttemptDocument) -> Text:
    """Return how long a passed test took, or the outcome of another one."""
    if one.outcome == Outcome.PASSED:
        return Text(f"{one.seconds:.1f} s", style=_STYLES[one.outcome])
    return Text(one.outcome, style=_STYLES.get(one.outcome, _BAD))


def _conditions(package: SmokedDocument) -> Iterator[RenderableType]:
    """List the hostile conditions that were applied, and those that could not be."""
    applied = {name: how for run in package.runs for name, how in run.applied.items()}
    missing = {name: why for run in package.runs for name, why in run.not_applied.items()}
    if not applied and not missing:
        return
    others = {n: Text(f"not applied: {why}", style="yellow") for n, why in missing.items()}
    yield ""
    yield table((word("hostile"), folded("how")), (*applied.items(), *others.items()))


def _told(package: SmokedDocument) -> Iterator[RenderableType]:
    """Show why tests were not run, and why others failed, with the end of their output."""
    idle: dict[str, dict[str, None]] = {}
    places: dict[tuple[str, Outcome, str], list[str]] = {}
    outputs: dict[tuple[Outcome, str], str] = {}
    for run in package.runs:
        for one in run.tests:
            why = one.why or ""
            if one.outcome == Outcome.NOT_RUN:
                idle.setdefault(why, {})[_name(one)] = None
            elif why:
                key = (_name(one), one.outcome, why)
                places.setdefault(key, []).append(f"{run.installer} {run.environment}")
                outputs.setdefault((one.outcome, why), one.output or "")
    for why, names in idle.items():
        yield ""
        yield Text.assemble(("not run: ", "yellow"), f"{why}: {', '.join(names)}")
    alike: dict[tuple[Outcome, str, str], list[str]] = {}
    for (name, outcome, why), listed in places.items():
        alike.setdefault((outcome, why, ", ".join(listed)), []).append(name)
    for (outcome, why, where), tests in alike.items():
        style = _STYLES.get(outcome, _BAD)
        yield ""
        yield Text.assemble((f"{', '.join(tests)} {outcome}", style), f" ({where}): {why}")
        lines = [line for line in outputs[outcome, why].splitlines() if not _DULL.search(line)]
        if len(lines) > 1:
            yield indented(Text("\n".join(lines[-_SHOWN:]), style="dim"), 4)
