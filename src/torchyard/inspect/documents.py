"""What `--json` prints. The schemas under `data/schemas/` are generated from these classes."""

from collections.abc import Iterable, Mapping
from typing import Literal, dataclass_transform

import msgspec

from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.plan.diff import Change, Differences, PlanDiff
from torchyard.plan.estimate import estimate
from torchyard.plan.explain import CellStory, Ingredient, ingredients
from torchyard.plan.graph import Job, Plan
from torchyard.plan.settings import Setting
from torchyard.plan.summary import summarize


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Document(msgspec.Struct, frozen=True):
    """The base of all reports: every key is always there."""


class ProjectDocument(Document, kw_only=True):
    """What is built."""

    name: str
    version: str
    recipe: str


class SharingDocument(Document, kw_only=True):
    """How many compilations of a core the plan needs, and how many it would without sharing."""

    cores: int
    packages: int
    saved: int


class EstimateDocument(Document, kw_only=True):
    """Seconds and bytes, as far as `[requirements]` give them; `timed_jobs` says how far."""

    timed_jobs: int
    machine_seconds: int
    longest_path_seconds: int
    largest_memory_bytes: int
    largest_disk_bytes: int


class ExcludedDocument(Document, kw_only=True):
    """Cells that one rule or table leaves out."""

    reason: str
    origin: str
    cells: list[str]


class NeedsDocument(Document, kw_only=True):
    """What a job wants from a machine, as far as it is known."""

    memory_bytes: int | None
    disk_bytes: int | None
    seconds: int | None
    capabilities: list[str]


class JobDocument(Document, kw_only=True):
    """One job; its inputs are identifiers of jobs that stand before it.

    The fingerprint is the sha256 of the canonical JSON of `inputs` (as fingerprints), `recipe`,
    `scope`, `settings` and `stage`.
    """

    id: str
    stage: Stage
    scope: str
    recipe: str
    fingerprint: str
    inputs: list[str]
    settings: dict[str, Setting]
    needs: NeedsDocument


class PlanDocument(Document, kw_only=True):
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
    excluded: list[ExcludedDocument]
    warnings: list[str]
    cells: list[str]
    jobs: list[JobDocument]


class CauseDocument(Document, kw_only=True):
    """A difference between two configurations."""

    what: str
    origin: str


class ChangeDocument(Document, kw_only=True):
    """What happens to one package, and why."""

    cell: str
    causes: list[CauseDocument]


class DiffDocument(Document, kw_only=True):
    """`torchyard plan diff --json`."""

    version: Literal[1] = 1
    appeared: list[ChangeDocument]
    vanished: list[ChangeDocument]
    rebuilt: list[ChangeDocument]
    unchanged: int


class IngredientDocument(Document, kw_only=True):
    """One thing that a cell or a fingerprint depends on."""

    name: str
    value: str
    origin: str


class ExplainedJobDocument(Document, kw_only=True):
    """A job and what its fingerprint is made of."""

    id: str
    fingerprint: str
    packages: int
    ingredients: list[IngredientDocument]
    changed: list[CauseDocument] | None


class ExplainDocument(Document, kw_only=True):
    """`torchyard explain --json`: a cell with its jobs, or one job."""

    version: Literal[1] = 1
    id: str
    planned: bool
    reason: str | None
    origin: str | None
    admitted_by: list[IngredientDocument]
    subsets: list[str]
    jobs: list[ExplainedJobDocument]


class ValueDocument(Document, kw_only=True):
    """One value of the configuration."""

    key: str
    value: str
    origin: str


class ConfigDocument(Document, kw_only=True):
    """`torchyard config show --json`."""

    version: Literal[1] = 1
    values: list[ValueDocument]


REPORTS: Mapping[str, type[Document]] = {
    "plan": PlanDocument,
    "plan-diff": DiffDocument,
    "explain": ExplainDocument,
    "config-show": ConfigDocument,
}


def encode(document: Document) -> bytes:
    """Write a report the way it is printed: for machines first, but readable."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def plan_document(plan: Plan) -> PlanDocument:
    project = plan.yard.project
    summary = summarize(plan)
    guess = estimate(plan)
    identifiers = [job.identifier for job in plan.jobs()]
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
            cores=summary.compilations, packages=summary.total, saved=summary.saved
        ),
        estimate=EstimateDocument(
            timed_jobs=guess.timed,
            machine_seconds=guess.machine_time,
            longest_path_seconds=guess.longest_path,
            largest_memory_bytes=guess.memory,
            largest_disk_bytes=guess.disk,
        ),
        excluded=[
            ExcludedDocument(
                reason=absence.reason,
                origin=str(absence.origin),
                cells=[f"{plan.label}/{cell.path}" for cell in cells],
            )
            for absence, cells in plan.excluded().items()
        ],
        warnings=list(plan.warnings),
        cells=[f"{plan.label}/{cell.path}" for cell in plan.cells()],
        jobs=[
            JobDocument(
                id=job.identifier,
                stage=job.stage,
                scope=job.path,
                recipe=project.recipe.label,
                fingerprint=job.fingerprint,
                inputs=[identifiers[number] for number in job.inputs],
                settings=job.settings.values,
                needs=_needs(job.settings.needs),
            )
            for job in plan.jobs()
        ],
    )


def _needs(needs: Needs) -> NeedsDocument:
    return NeedsDocument(
        memory_bytes=needs.memory,
        disk_bytes=needs.disk,
        seconds=needs.time,
        capabilities=list(needs.capabilities),
    )


def diff_document(diff: PlanDiff) -> DiffDocument:
    def changes(found: tuple[Change, ...]) -> list[ChangeDocument]:
        return [
            ChangeDocument(
                cell=change.identifier,
                causes=[CauseDocument(what=c.what, origin=c.origin) for c in change.causes],
            )
            for change in found
        ]

    return DiffDocument(
        appeared=changes(diff.appeared),
        vanished=changes(diff.vanished),
        rebuilt=changes(diff.rebuilt),
        unchanged=diff.unchanged,
    )


def _ingredients(found: Iterable[Ingredient]) -> list[IngredientDocument]:
    return [
        IngredientDocument(name=item.name, value=item.value, origin=str(item.origin))
        for item in found
    ]


def job_document(plan: Plan, job: Job, against: Differences | None) -> ExplainedJobDocument:
    changed = None
    if against:
        changed = [
            CauseDocument(what=cause.what, origin=cause.origin)
            for cause in against.causes(job.stage, job.path)
        ]
    return ExplainedJobDocument(
        id=job.identifier,
        fingerprint=job.fingerprint,
        packages=plan.packages_of(job),
        ingredients=_ingredients(ingredients(plan, job)),
        changed=changed,
    )


def explain_cell_document(
    plan: Plan, story: CellStory, against: Differences | None
) -> ExplainDocument:
    absence = story.absence
    return ExplainDocument(
        id=f"{plan.label}/{story.cell.path}",
        planned=absence is None,
        reason=absence.reason if absence else None,
        origin=str(absence.origin) if absence else None,
        admitted_by=_ingredients(story.admitted_by),
        subsets=list(story.subsets),
        jobs=[job_document(plan, job, against) for job in story.jobs],
    )


def explain_job_document(plan: Plan, job: Job, against: Differences | None) -> ExplainDocument:
    return ExplainDocument(
        id=job.identifier,
        planned=True,
        reason=None,
        origin=None,
        admitted_by=[],
        subsets=[],
        jobs=[job_document(plan, job, against)],
    )
