"""A plug-in of pytest: it writes each outcome to a journal, and leaves out files that have passed.

    TORCHYARD_TEST_JOURNAL=FILE pytest -p scripts.pytest_journal

A run that was interrupted goes on with the files that have not passed as a whole. What has passed
before is read from FILE.before, as all processes of pytest-xdist have to collect the same tests.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

JOURNAL = "TORCHYARD_TEST_JOURNAL"
_JOURNAL_FILE = os.environ.get(JOURNAL, "")  # read at once: tests change the environment
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A test that has ended."""

    name: str
    outcome: str
    seconds: float

    @property
    def folder(self) -> str:
        """Return the folder of the test."""
        return self.name.partition("::")[0].rpartition("/")[0]


def ended(journal: Path) -> Iterator[Ended]:
    """Yield the tests that have ended, by the last run of each."""
    running: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []:
        name, when, outcome, seconds = json.loads(line)
        if when == "setup":
            running[name].clear()
        running[name][when] = (outcome, seconds)
    for name, phases in running.items():
        if "teardown" in phases:
            outcomes = {outcome for outcome, _ in phases.values()}
            worst = next(word for word in ("failed", "skipped", "passed") if word in outcomes)
            yield Ended(name=name, outcome=worst, seconds=sum(s for _, s in phases.values()))


def prepare(journal: Path) -> dict[str, str]:
    """Write down what has not failed, and return the environment for pytest."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    names = [test.name for test in ended(journal) if test.outcome != "failed"]
    _before(journal).write_text(json.dumps(names), encoding="utf-8")
    return {JOURNAL: str(journal)}


def _before(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.before")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out files of which no test is left."""
    before = set(json.loads(_before(Path(_JOURNAL_FILE)).read_text(encoding="utf-8")))
    left = {item.path for item in items if item.nodeid not in before}
    config.hook.pytest_deselected(items=[item for item in items if item.path not in left])
    items[:] = [item for item in items if item.path in left]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append an outcome to the journal."""
    if not _IS_WORKER:  # the process that started it gets its reports
        line = json.dumps([report.nodeid, report.when, report.outcome, round(report.duration, 3)])
        with Path(_JOURNAL_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
