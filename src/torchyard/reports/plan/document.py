"""What `torchyard explain` prints with `--json`."""

from collections.abc import Iterable
from typing import Literal

from torchyard.model.values import Reported
from torchyard.plan.diff import Cause, FingerprintDiff
from torchyard.plan.explain import Explanation, Ingredient, ingredients
from torchyard.plan.graph import Job, Plan


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
    changed: list[Cause] | None


class ExplainDocument(Reported, kw_only=True):
    """`torchyard explain --json`: a cell with its jobs, or one job."""

    version: Literal[1] = 1
    id: str
    planned: bool
    reasons: list[Cause]
    admitted_by: list[IngredientDocument]
    subsets: list[str]
    overrides: list[str]
    jobs: list[ExplainedJobDocument]


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
        reasons=[Cause(one.reason, str(one.origin)) for one in story.absences],
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
        changed=list(against.causes(job.stage, job.scope)) if against else None,
    )
