"""Plan a file, or compare two plans, without building."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from torchyard.config.load import load_config
from torchyard.errors import SelectionError, UsageError
from torchyard.features.plan.report import JobRow, MatrixReport, PlannedProject
from torchyard.host.files import absolute, dirname, exists, join
from torchyard.model.config import Config
from torchyard.plan.build import make_plan
from torchyard.plan.diff import PlanDiff, diff_plans
from torchyard.plan.expand import expand
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import PlanSelection, ReadSelection
from torchyard.plan.summary import estimate, exclusions, inclusions, own_rows, summarize
from torchyard.workspace.progress import ignore_line
from torchyard.workspace.toolchain_id import with_toolchain_id


def describe_plan(
    file: str = "torchyard.toml",
    *,
    changes: Sequence[str] = (),
    subset: str | None = None,
    select: Sequence[str] = (),
    skip: Sequence[str] = (),
    listed: Literal["jobs"] | None = None,
    diagram: str | None = None,
    for_json: bool = True,
    on_line: Callable[[str], object] = ignore_line,
) -> MatrixReport:
    """Return the packages of a file, and the jobs that make them.

    Args:
        file: The configuration.
        changes: Changes to it, each as `KEY=VALUE`.
        subset: A named part of the matrix.
        select: Words of a selector; none selects all packages.
        skip: Selectors of cells and jobs to leave out.
        listed: Only the names of jobs are needed.
        diagram: The format of a diagram.
        for_json: Whether the whole report is needed.
        on_line: Called with warnings, and with jobs that need not run by a store that is here.
    """
    if for_json + bool(listed) + bool(diagram) > 1:
        msg = "--json, --list and --diagram exclude each other"
        raise UsageError(msg, hint="choose one form of output")
    selection = PlanSelection(subset, tuple(select), tuple(skip))
    config = load_config(file, tuple(changes))
    if diagram and ReadSelection(expand(config), selection).of_jobs:
        msg = "a diagram shows how packages are made, not single jobs"
        raise UsageError(msg, hint="select cells, such as cu130 or linux-x86_64")
    plan = make_plan(with_toolchain_id(config, file), selection)
    for warning in plan.warnings:
        on_line(f"warning: {warning}")
    if not (for_json or listed or diagram):
        for line, count in _reusable(plan, file).items():
            on_line(line if count == 1 else f"{line} ({count:,} jobs)")
    return plan_report(plan)


def _reusable(plan: Plan, file: str) -> Counter[str]:
    """Count the jobs that need not run, by stage and reason, if the file's store is here."""
    store_url = plan.config.store
    if not (store_url.startswith("file:") or exists(join(dirname(absolute(file)), store_url))):
        return Counter()
    from torchyard.workspace.reusable import (
        local_store,
        reusable_jobs,
    )

    store = local_store(file, plan.config)
    found = reusable_jobs(plan, store, file) if store else {}
    return Counter(f"{name.partition(':')[0]}: {why}" for name, why in found.items())


def plan_report(plan: Plan) -> MatrixReport:
    """Return the report of a plan."""
    config, project = plan.config, plan.config.project
    return MatrixReport(
        project=PlannedProject(
            name=project.name, version=project.version, recipe=project.recipe.name
        ),
        subset=plan.subset,
        partial=plan.partial,
        summary=summarize(plan),
        estimate=estimate(plan),
        excluded=exclusions(plan),
        included=inclusions(plan),
        own_rows=own_rows(config),
        left_out=config.left_out,
        glibc=config.build.glibc,
        abi=config.build.abi,
        warnings=plan.warnings,
        cells=[f"{plan.label}/{cell.path}" for cell in plan.cells()],
        jobs=[_job_row(plan, job) for job in plan.jobs],
    )


def _job_row(plan: Plan, job: Job) -> JobRow:
    recipe = plan.config.project.recipe
    return JobRow(
        id=job.identifier,
        stage=job.stage,
        stage_revision=recipe.revision(job.stage),
        scope=job.path,
        recipe=recipe.name,
        fingerprint=job.fingerprint,
        inputs=[plan.jobs[number].identifier for number in job.inputs],
        settings=job.settings.values,
        needs=job.settings.needs,
    )


def plan_difference(
    old: str,
    new: str,
    *,
    file: str = "torchyard.toml",
    subset: str | None = None,
    on_line: Callable[[str], object] = ignore_line,
) -> PlanDiff:
    """Return packages that appear, vanish or are rebuilt between two plans, and reasons.

    Args:
        old: A file, or a git revision of `file`.
        new: The other one.
        file: The configuration whose revisions are compared.
        subset: A named part of the matrix.
        on_line: Called with warnings.
    """
    before, after = (
        make_plan(_config_at(name, file, subset, (old, new)), PlanSelection(subset))
        for name in (old, new)
    )
    if before.config.source.path or after.config.source.path:
        on_line(
            "warning: [source] path: both sides are planned with the directory's present content"
        )
    return diff_plans(before, after)


def _config_at(name: str, file: str, subset: str | None, both: Sequence[str]) -> Config:
    """Return the config of a file, or of a git revision of another one."""
    from torchyard.config.revisions import load_config_at

    config = with_toolchain_id(load_config_at(name, file, others=both), file)
    if subset is not None and subset not in config.subsets:
        msg = f"`{name}` has no subset `{subset}`"
        raise SelectionError(msg, hint="compare without --subset")
    return config
