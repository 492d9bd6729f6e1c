"""What commands about plans print with `--json`."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.model.step import Setting
from torchyard.model.values import Reported
from torchyard.plan.diff import FingerprintDiff, PackageChange, PlanDiff
from torchyard.plan.estimate import estimate
from torchyard.plan.explain import Explanation, Ingredient, ingredients
from torchyard.plan.graph import Job, Plan
from torchyard.plan.summary import RuleCount, exclusions, inclusions, summarize
from torchyard.terminal.json_output import encode


class ProjectDocument(Reported, kw_only=True):
    """What is built."""

    name: str
    version: str
    recipe: str


class SharingDocument(Reported, kw_only=True):
    """How often the C++ code is compiled, for how many packages, and for further cells.

    `saved` counts compilations against builds one by one: of each wheel, each zip, and each
    Python's conda packages.
    `served` are cells without a package of their own, which others serve by their ABI class.
    """

    compilations: int
    packages: int
    saved: int
    served: int


class EstimateDocument(Reported, kw_only=True):
    """Seconds and bytes, as far as `[requirements]` give them; `timed_jobs` says how far."""

    timed_jobs: int
    machine_seconds: int | None
    longest_path_seconds: int | None
    largest_memory_bytes: int | None
    largest_disk_bytes: int | None


class RuleCountDocument(Reported, kw_only=True):
    """What one rule or table does, and to how many cells."""

    reason: str
    origin: str
    cells: int


class NeedsDocument(Reported, kw_only=True):
    """What a job wants from a machine, as far as it is known."""

    memory_bytes: int | None
    disk_bytes: int | None
    seconds: int | None
    capabilities: list[str]


class JobDocument(Reported, kw_only=True):
    """One job; its inputs are identifiers of jobs that stand before it.

    The fingerprint is the sha256 of the canonical JSON of `inputs` (as sorted fingerprints),
    `recipe`, `scope`, `settings`, `stage` and `stage_revision`.
    """

    id: str
    stage: Stage
    stage_revision: int
    scope: str
    recipe: str
    fingerprint: str
    inputs: list[str]
    settings: dict[str, Setting]
    needs: NeedsDocument


class PlanDocument(Reported, kw_only=True):
    """`torchyard plan --json`."""

    version: Literal[1] = 1
    project: ProjectDocument
    subset: str | None
    partial: bool
    packages: dict[str, int]
    packages_by_platform: dict[str, dict[str, int]]
    dimensions: dict[str, dict[str, int]]
    stages: dict[str, int]
    sharing: SharingDocument
    estimate: EstimateDocument
    excluded: list[RuleCountDocument]
    included: list[RuleCountDocument]
    warnings: list[str]
    cells: list[str]
    jobs: list[JobDocument]


class CauseDocument(Reported, kw_only=True):
    """A difference between two configurations."""

    what: str
    origin: str


class PackageChangeDocument(Reported, kw_only=True):
    """What happens to one package, and why."""

    cell: str
    causes: list[CauseDocument]


class DiffDocument(Reported, kw_only=True):
    """`torchyard plan diff --json`."""

    version: Literal[1] = 1
    appeared: list[PackageChangeDocument]
    vanished: list[PackageChangeDocument]
    rebuilt: list[PackageChangeDocument]
    retested: list[PackageChangeDocument]
    unchanged: int


class IngredientDocument(Reported, kw_only=True):
    """One thing that a cell or a fingerprint depends on."""

    name: str
    value: str
    origin: str


class ExplainedJobDocument(Reported, kw_only=True):
    """A job and what its fingerprint is made of."""

    id: str
    fingerprint: str
    packages: int
    ingredients: list[IngredientDocument]
    changed: list[CauseDocument] | None


class ExplainDocument(Reported, kw_only=True):
    """`torchyard explain --json`: a cell with its jobs, or one job."""

    version: Literal[1] = 1
    id: str
    planned: bool
    reasons: list[CauseDocument]
    admitted_by: list[IngredientDocument]
    subsets: list[str]
    overrides: list[str]
    jobs: list[ExplainedJobDocument]


class ValueDocument(Reported, kw_only=True):
    """One value of the configuration."""

    key: str
    value: str
    origin: str


class ConfigDocument(Reported, kw_only=True):
    """`torchyard config show --json`."""

    version: Literal[1] = 1
    values: list[ValueDocument]


def plan_json(plan: Plan) -> Iterator[bytes]:
    """Yield the document of a plan piece by piece, so that large plans are not held twice."""
    opening, closing = encode(_plan_document(plan)).split(b'"jobs": []')
    yield opening + b'"jobs": [\n'
    last = len(plan) - 1
    for job in plan.jobs:
        comma = b",\n" if job.number < last else b"\n"
        yield b"    " + msgspec.json.encode(_job_document(plan, job)) + comma
    yield b"  ]" + closing


def _plan_document(plan: Plan) -> PlanDocument:
    """All but the jobs."""
    project = plan.config.project
    summary = summarize(plan)
    guess = estimate(plan)
    return PlanDocument(
        project=ProjectDocument(
            name=project.name, version=project.version, recipe=project.recipe.name
        ),
        subset=plan.subset,
        partial=plan.partial,
        packages=summary.packages,
        packages_by_platform=summary.platforms,
        dimensions=summary.dimensions,
        stages={stage.value: count for stage, count in summary.stages.items()},
        sharing=SharingDocument(
            compilations=summary.compilations,
            packages=summary.total,
            saved=summary.saved,
            served=summary.served,
        ),
        estimate=EstimateDocument(
            timed_jobs=guess.timed,
            machine_seconds=guess.machine_time or None,
            longest_path_seconds=guess.longest_path or None,
            largest_memory_bytes=guess.memory or None,
            largest_disk_bytes=guess.disk or None,
        ),
        excluded=_rules(exclusions(plan)),
        included=_rules(inclusions(plan)),
        warnings=list(plan.warnings),
        cells=[f"{plan.label}/{cell.path}" for cell in plan.cells()],
        jobs=[],
    )


def _rules(rules: Iterable[RuleCount]) -> list[RuleCountDocument]:
    return [
        RuleCountDocument(reason=rule.reason, origin=str(rule.origin), cells=rule.cells)
        for rule in rules
    ]


def _job_document(plan: Plan, job: Job) -> JobDocument:
    recipe = plan.config.project.recipe
    return JobDocument(
        id=job.identifier,
        stage=job.stage,
        stage_revision=recipe.revision(job.stage),
        scope=job.path,
        recipe=recipe.name,
        fingerprint=job.fingerprint,
        inputs=[plan.jobs[number].identifier for number in job.inputs],
        settings=job.settings.values,
        needs=_needs(job.settings.needs),
    )


def _needs(needs: Needs) -> NeedsDocument:
    return NeedsDocument(
        memory_bytes=needs.memory,
        disk_bytes=needs.disk,
        seconds=needs.time,
        capabilities=list(needs.capabilities),
    )


def diff_document(diff: PlanDiff) -> DiffDocument:
    def changes(found: tuple[PackageChange, ...]) -> list[PackageChangeDocument]:
        return [
            PackageChangeDocument(cell=change.identifier, causes=_causes(change.causes))
            for change in found
        ]

    return DiffDocument(
        appeared=changes(diff.appeared),
        vanished=changes(diff.vanished),
        rebuilt=changes(diff.rebuilt),
        retested=changes(diff.retested),
        unchanged=diff.unchanged,
    )


def _causes(pairs: Iterable[tuple[str, object]]) -> list[CauseDocument]:
    """Write causes, or the reasons of absences: what, and the origin of it."""
    return [CauseDocument(what=what, origin=str(origin)) for what, origin in pairs]


def _ingredients(found: Iterable[Ingredient]) -> list[IngredientDocument]:
    return [
        IngredientDocument(name=item.name, value=item.value, origin=str(item.origin))
        for item in found
    ]


def explain_document(
    plan: Plan, story: Explanation, against: FingerprintDiff | None
) -> ExplainDocument:
    return ExplainDocument(
        id=str(story.identifier),
        planned=not story.absences,
        reasons=_causes((one.reason, one.origin) for one in story.absences),
        admitted_by=_ingredients(story.admitted_by),
        subsets=list(story.subsets),
        overrides=[str(override.origin) for override in story.overrides],
        jobs=[_explained_job(plan, job, against) for job in story.jobs],
    )


def _explained_job(plan: Plan, job: Job, against: FingerprintDiff | None) -> ExplainedJobDocument:
    return ExplainedJobDocument(
        id=job.identifier,
        fingerprint=job.fingerprint,
        packages=plan.packages_of(job),
        ingredients=_ingredients(ingredients(plan, job)),
        changed=_causes(against.causes(job.stage, job.scope)) if against else None,
    )
