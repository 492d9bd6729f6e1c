"""Report on a plan and its results, or on selected jobs."""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import msgspec

from torchyard.errors import HostError, SelectionError, TorchyardError
from torchyard.features.check.report import CheckReport
from torchyard.features.deps.report import DepsReport
from torchyard.features.deps.use_case import compare_dependencies
from torchyard.features.graph.report import GraphReport
from torchyard.features.graph.use_case import graph_links
from torchyard.features.report.report import PlanReport, ReportedJob
from torchyard.features.timings.report import TimingsReport
from torchyard.features.timings.use_case import measure_build
from torchyard.insight.build_record import LOG
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.model.selector import named_jobs
from torchyard.model.values import UNDECODABLE
from torchyard.plan.graph import Job
from torchyard.store.store import Store
from torchyard.store.trees import fetch_blob
from torchyard.version import __version__
from torchyard.workspace.locations import open_store
from torchyard.workspace.plan import plan_packages

_BUILDS = 8
"""The most builds to show with a timeline and a graph."""
_REPORT = "check.json"


def report_plan(
    what: str = "",
    *,
    source: str = "",
    file: str = "torchyard.toml",
    store: str | None = None,
) -> PlanReport:
    """Collect facts from the results of a plan.

    Args:
        what: A selector of jobs, or a configuration instead of `file`; all jobs if empty.
        source: A source tree whose dependencies are compared; by default the configuration's, if it
            is a directory.
        file: The configuration.
        store: The store, if it is not the file's.
    """
    if Path(what).is_file():
        what, file = "", what
    if source and not Path(source).is_dir():
        msg = f"there is no directory `{source}`"
        raise HostError(msg, hint="--source names the directory of a checkout")
    plan = plan_packages(file)
    jobs = _selected(plan.jobs, what)
    opened = open_store(store, file, plan.config, make=False)
    results = _results(opened, jobs)
    checks = {name: report for name, r in results.items() if (report := _check(opened, r))}
    source = source or str(Path(file).parent / (plan.config.source.path or "none"))
    return PlanReport(
        torchyard=__version__,
        project=plan.label,
        jobs=[_state(job, results.get(job.identifier), checks) for job in jobs],
        timings=list(_timings(results.values(), file, store)),
        graphs=list(_graphs(results.values(), file, store)),
        checks=checks,
        drift=_drift(source, file),
    )


def _selected(jobs: Sequence[Job], what: str) -> list[Job]:
    names = {job.identifier: job.identifier for job in jobs}
    chosen = set(named_jobs(names, what.split()))
    return [job for job in jobs if job.identifier in chosen]


def _results(store: Store, jobs: Sequence[Job]) -> dict[str, Result]:
    """Return the result of each job, or its newest one with other settings.

    Two releases may share a result, which has the identifier of the first.
    """
    names = {job.identifier for job in jobs}
    wanted = {job.fingerprint for job in jobs}
    every = [r for r in store.results(unusable={}) if r.id in names or r.fingerprint in wanted]
    every.sort(key=lambda result: result.started)
    by_name = {result.id: result for result in every}
    own = {result.fingerprint: result for result in every}
    found = {
        job.identifier: own.get(job.fingerprint) or by_name.get(job.identifier) for job in jobs
    }
    return {name: result for name, result in found.items() if result}


def _state(job: Job, result: Result | None, checks: dict[str, CheckReport]) -> ReportedJob:
    check = checks.get(job.identifier)
    is_made = result is not None and result.fingerprint == job.fingerprint
    return ReportedJob(
        id=job.identifier,
        stage=job.stage,
        scope=job.path,
        state="made" if is_made else "older" if result else "missing",
        fingerprint=job.fingerprint,
        started=result.started if result else "",
        seconds=result.seconds if result else 0.0,
        bytes=result.size if result else 0,
        errors=check.findings.get("error", 0) if check else 0,
    )


def _check(store: Store, result: Result) -> CheckReport | None:
    """Return the report of a check, or None if it is unreadable."""
    for file in result.tree.files:
        if file.path == _REPORT:
            text = BytesIO()
            for blob in file.blobs:
                fetch_blob(store, blob, text, file.path)
            try:
                return msgspec.json.decode(text.getvalue(), type=CheckReport)
            except UNDECODABLE:
                return None
    return None


def _builds(results: Iterable[Result]) -> list[Result]:
    """Return the results with a log of ninja."""
    logged = (r for r in results if any(f.path.endswith(f"/{LOG}") for f in r.tree.files))
    return list(logged)[:_BUILDS]


def _timings(results: Iterable[Result], file: str, store: str | None) -> Iterator[TimingsReport]:
    for result in _builds(results):
        found = measure_build(result.fingerprint, file=file, store=store)
        yield msgspec.structs.replace(found, what=result.id)


def _graphs(results: Iterable[Result], file: str, store: str | None) -> Iterator[GraphReport]:
    """Yield the graphs of builds, or else of the first package."""
    every = list(results)
    packages = [result for result in every if result.spec.task.stage is Stage.PACKAGE]
    for result in _builds(every) or packages[:1]:
        try:
            found = graph_links(result.fingerprint, file=file, store=store)
        except TorchyardError:  # CMake left nothing, or the package is unreadable
            continue
        if found.graph.nodes:
            yield msgspec.structs.replace(found, what=result.id)


def _drift(source: str, file: str) -> DepsReport | None:
    if not Path(source).is_dir():
        return None
    try:
        return compare_dependencies(source, file=file)
    except SelectionError:  # it names no versions
        return None
