"""Why a cell or a job exists or does not, and what its fingerprint is made of."""

from collections.abc import Iterator
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.identifier import Cell, Identifier
from torchyard.model.matrix import Override
from torchyard.model.recipe import Stage
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Origin
from torchyard.model.yard import Yard
from torchyard.plan.expand import UNAVAILABLE, Absence, verdict
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import in_subset


class Ingredient(NamedTuple):
    """One thing that a fingerprint depends on, and who said it."""

    name: str
    value: str
    origin: Origin


class CellStory(NamedTuple):
    """All there is to say about a cell."""

    cell: Cell
    absence: Absence | None
    admitted_by: tuple[Ingredient, ...]
    subsets: tuple[str, ...]
    overrides: tuple[Override, ...]
    jobs: tuple[Job, ...]


def explain_cell(plan: Plan, identifier: Identifier) -> CellStory:
    """Tell the story of a cell, planned or not. The plan is that of the whole matrix."""
    yard = plan.yard
    check_label(plan, identifier)
    cell = Cell.from_path(identifier.path)
    absence = verdict(cell, yard, plan.tables) or _unreached(plan, cell)
    return CellStory(
        cell=cell,
        absence=absence,
        admitted_by=() if absence else tuple(_admission(plan, cell)),
        subsets=tuple(
            name for name, s in yard.subsets.items() if not absence and in_subset(cell, yard, s)
        ),
        overrides=tuple(o for o in yard.overrides if not absence and o.pattern.matches(cell)),
        jobs=() if absence else tuple(_jobs_of(plan, cell)),
    )


def check_label(plan: Plan, identifier: Identifier) -> None:
    if identifier.label != plan.label:
        msg = f"`{identifier}` is about {identifier.label}, but this file makes {plan.label}"
        hint = did_you_mean(identifier.label, [plan.label])
        raise SelectionError(msg, hint=hint)


def _unreached(plan: Plan, cell: Cell) -> Absence | None:
    """A cell that no rule forbids may still be none, as a wheel for no Python is."""
    if plan.get(Stage.PACKAGE, cell.path):
        return None
    kind = plan.tables.packages[cell.package]
    how = "made for each Python" if kind.per_python else "the same for every Python"
    return Absence(f"a {cell.package} is {how}, so it can't be for `{cell.python}`", UNAVAILABLE)


def _admission(plan: Plan, cell: Cell) -> Iterator[Ingredient]:
    """The lines of the file that admit a cell."""
    yard = plan.yard
    for rule in yard.matrix.include:
        if rule.matches(cell):
            yield Ingredient("included", rule.reason, rule.origin)
            return
    dimensions = yard.project.recipe.dimensions
    for field, dimension, value in zip(cell._fields, dimensions, cell, strict=True):
        origin = value_origin(yard, field, value)
        if origin:
            yield Ingredient(dimension, value, origin)


def value_origin(yard: Yard, field: str, value: str) -> Origin | None:
    """The line that lists a value of a dimension, if the matrix itself does."""
    position = Cell._fields.index(field)
    dimension = yard.project.recipe.dimensions[position]
    for index, couple in enumerate(yard.matrix.couples):
        for row, values in enumerate(couple.rows):
            if position in couple.fields and values[couple.fields.index(position)] == value:
                return yard.origin(f"matrix.couple[{index}].{dimension}[{row}]")
    if value in yard.matrix.values[position]:
        index = yard.matrix.values[position].index(value)
        path = f"matrix.{dimension}"
        return yard.origins.get(f"{path}[{index}]", yard.origin(path))
    return None


def _jobs_of(plan: Plan, cell: Cell) -> Iterator[Job]:
    """The jobs that make and prove a cell, first things first."""
    stages = (Stage.PACKAGE, Stage.CHECK, Stage.SMOKE)
    part = plan.keep(plan.find(stage, cell.path).number for stage in stages)
    return (plan.find(job.stage, job.path) for job in part.jobs())


def ingredients(plan: Plan, job: Job) -> Iterator[Ingredient]:
    """Everything that a job's fingerprint is made of, in words."""
    yield Ingredient("stage", job.stage.value, Origin("plan"))
    yield Ingredient("scope", job.path or "everything", Origin("plan"))
    yield Ingredient("recipe", plan.yard.project.recipe.label, plan.yard.origin("project.recipe"))
    for name, value in flat_settings(job).items():
        yield Ingredient(name, value, job.settings.origins[name])
    for index in job.inputs:
        source = plan.job(index)
        yield Ingredient("input", source.fingerprint, Origin(source.identifier))


def flat_settings(job: Job) -> dict[str, str]:
    """Settings as `name: text`, with tables unfolded: `env.USE_MAGMA`."""
    flat: dict[str, str] = {}
    for name, value in job.settings.values.items():
        match value:
            case dict():
                flat.update({f"{name}.{key}": text for key, text in value.items()})
            case list():
                flat[name] = " ".join(value)
            case bool():
                flat[name] = "true" if value else "false"
            case str():
                flat[name] = value
    return flat
