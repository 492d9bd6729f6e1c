"""The data of `torchyard report`, written beside the page."""

from collections import Counter
from typing import Literal, NamedTuple

from torchyard.features.check.report import CheckReport
from torchyard.features.deps.report import DepsReport
from torchyard.features.graph.report import GraphReport
from torchyard.features.timings.report import TimingsReport
from torchyard.model.identifier import scope_of
from torchyard.model.recipe import Stage
from torchyard.model.values import Reported


class ReportedJob(Reported, kw_only=True):
    """A job of the plan, and its result.

    It is `made`, or has only a result of earlier settings (`older`), or none (`missing`).
    """

    id: str
    stage: Stage
    scope: str
    state: Literal["made", "older", "missing"]
    fingerprint: str
    started: str
    seconds: float
    bytes: int
    errors: int


class GridCell(NamedTuple):
    """A package in the grid: its state as a keyword, and as text."""

    state: Literal["good", "bad", "older", "missing", "none"]
    words: str


class PlanReport(Reported, kw_only=True):
    """A plan: its jobs, and facts from their results."""

    version: Literal[1] = 1
    torchyard: str
    project: str
    jobs: list[ReportedJob]
    timings: list[TimingsReport]
    graphs: list[GraphReport]
    checks: dict[str, CheckReport]
    """By job."""
    drift: DepsReport | None

    def stages(self) -> list[tuple[str, int, int, float]]:
        """Return the number of each stage's jobs, of made ones, and their time."""
        every = Counter(job.stage.value for job in self.jobs)
        made = [job for job in self.jobs if job.state == "made"]
        return [
            (
                stage,
                count,
                sum(job.stage == stage for job in made),
                sum(job.seconds for job in made if job.stage == stage),
            )
            for stage, count in every.items()
        ]

    def grid(self) -> tuple[list[str], list[tuple[str, list[GridCell]]]]:
        """Return the columns of the grid, Python and package, and a row for each block."""
        packages = [job for job in self.jobs if job.stage is Stage.PACKAGE]
        scopes = {job.id: scope_of(job.stage, job.scope) for job in packages}
        columns = list(dict.fromkeys(" ".join(fields[3:]) for fields in scopes.values()))
        rows: dict[str, dict[str, GridCell]] = {}
        for job in packages:
            platform, compute, variant, *rest = scopes[job.id]
            row = rows.setdefault(f"{platform} {compute}-{variant}", {})
            row[" ".join(rest)] = self._cell(job)
        none = GridCell("none", "")
        return columns, [
            (name, [row.get(column, none) for column in columns]) for name, row in rows.items()
        ]

    def _cell(self, package: ReportedJob) -> GridCell:
        """Return the state of a package: made, checked and tested."""
        if package.state == "missing":
            return GridCell("missing", "missing")
        if package.state == "older":
            return GridCell("older", "older")
        proofs = [
            job
            for job in self.jobs
            if job.scope == package.scope and job.stage in (Stage.CHECK, Stage.SMOKE)
        ]
        if errors := sum(job.errors for job in proofs):
            return GridCell("bad", f"{errors} error{'s' * (errors > 1)}")
        open_ones = [job.stage.value for job in proofs if job.state != "made"]
        return GridCell("older", f"no {open_ones[0]}") if open_ones else GridCell("good", "good")
