"""Explain why a cell or job exists or not, and what its fingerprint covers."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell, Identifier, scope_of
from torchyard.model.matrix import Override
from torchyard.model.recipe import CELL_STAGES, DEPTH, Dimension, Stage
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Origin, Reported
from torchyard.plan.admission import Absence, admit
from torchyard.plan.constraints import Scope, release_name
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import subset_test


class Ingredient(Reported):
    """A dependency of a cell or a fingerprint, and its origin."""

    name: str
    value: str
    origin: str


class Explanation(NamedTuple):
    """Why a cell or job is absent, or the rules and jobs that make it."""

    identifier: Identifier
    absences: tuple[Absence, ...]
    admitted_by: tuple[Ingredient, ...] = ()
    subsets: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()
    jobs: tuple[Job, ...] = ()


def explain(plan: Plan, identifier: Identifier) -> Explanation:
    """Explain a cell or a job, planned or not."""
    if identifier.label != plan.label:
        msg = f"`{identifier}` names {identifier.label}, but this file builds {plan.label}"
        raise SelectionError(msg, hint=did_you_mean(identifier.label, [plan.label]))
    if identifier.stage is Stage.PUBLISH:
        return _explain_publish(plan, identifier)
    scope = scope_of(identifier.stage or Stage.PACKAGE, identifier.path)
    _check_values(plan, scope)
    if identifier.stage is Stage.BINDINGS and scope[-1] == ANY_PYTHON:
        msg = f"`{identifier}` can't exist: bindings are made for each Python"
        raise SelectionError(msg, hint="name a Python instead of `any`")
    absences = tuple(dict.fromkeys(_absences(plan, identifier.stage or Stage.PACKAGE, scope)))
    if absences:
        return Explanation(identifier, absences)
    if identifier.stage:
        return Explanation(identifier, (), jobs=(plan.find(identifier.stage, identifier.path),))
    return _explain_cell(plan, identifier, Cell(*scope))


def _explain_cell(plan: Plan, identifier: Identifier, cell: Cell) -> Explanation:
    config = plan.config
    return Explanation(
        identifier,
        (),
        admitted_by=tuple(_admission(config, cell)),
        subsets=tuple(_subsets(plan, cell)),
        overrides=tuple(o for o in config.overrides if o.pattern.matches(cell)),
        jobs=tuple(_jobs_of(plan, cell)),
    )


def _subsets(plan: Plan, cell: Cell) -> Iterator[str]:
    for name, subset in plan.config.subsets.items():
        with suppress(SelectionError):  # the subset has no cells
            if subset_test(plan.expansion, subset)(cell):
                yield name


def _explain_publish(plan: Plan, identifier: Identifier) -> Explanation:
    config = plan.config
    channel = config.channels.get(identifier.path)
    if channel is None:
        msg = f"there is no channel `{identifier.path}`"
        hint = did_you_mean(identifier.path, config.channels) if config.channels else None
        raise SelectionError(msg, hint=hint or "the file has no [channel.…]")
    if channel.promote_from:
        reason = f"it takes packages from channel {channel.promote_from}, not from a build"
        origin = config.origin(f"channel.{channel.name}.promote_from")
        return Explanation(identifier, (Absence(reason, origin),))
    return Explanation(identifier, (), jobs=(plan.find(Stage.PUBLISH, channel.name),))


def _check_values(plan: Plan, scope: Scope) -> None:
    """Raise SelectionError for a value in no table; it need not be in the matrix."""
    for (dimension, values), value in zip(
        plan.config.tables.known(plan.config.project.recipe).items(), scope, strict=False
    ):
        if value not in values and not (dimension is Dimension.PYTHON and value == ANY_PYTHON):
            msg = f"unknown {dimension} `{value}`"
            raise SelectionError(msg, hint=did_you_mean(value, values))


def _absences(plan: Plan, stage: Stage, scope: Scope) -> Iterator[Absence]:
    """Yield why there is no such job: the absences of the cells that it would serve."""
    if plan.get(stage, scope) is not None:
        return
    recipe = plan.config.project.recipe
    if stage not in recipe.stages:
        yield Absence(
            f"recipe {recipe.name} has no stage {stage}", plan.config.origin("project.recipe")
        )
        return
    cells = [Cell(*scope)] if len(scope) == DEPTH[Stage.PACKAGE] else _cells_under(plan, scope)
    for cell in cells:
        absence = admit(cell, plan.config).absence
        if absence:
            yield absence


def _cells_under(plan: Plan, scope: Scope) -> Iterator[Cell]:
    """Yield the cells that share a job of this scope."""
    platform, compute, variant, *rest = scope
    packages = plan.config.matrix.values[-1]
    pairs = [p for p in plan.expansion.pairs if p[1] in packages and (not rest or p[0] in rest)]
    for pair in pairs or [(rest[0], packages[0])]:
        yield Cell(platform, compute, variant, *pair)


def _admission(config: Config, cell: Cell) -> Iterator[Ingredient]:
    """Yield the lines of the file that admit a cell."""
    for rule in config.matrix.include:
        if rule.matches(cell):
            yield Ingredient("included", rule.reason, str(rule.origin))
            return
    dimensions = config.project.recipe.dimensions
    for field, dimension in enumerate(dimensions):
        origin = value_origin(config, field, cell[field])
        if origin:
            yield Ingredient(dimension.value, cell[field], str(origin))
    yield from _own_rows(config, cell)


def _own_rows(config: Config, cell: Cell) -> Iterator[Ingredient]:
    """Yield the rows of the file's own tables that a cell needs."""
    release = release_name(config, cell.variant) or ""
    rows = {"compute": cell.compute, "releases": release, "pythons": cell.python}
    rows |= {"trees": config.build.tree or "", "builds": config.build.preset or ""}
    for table, name in rows.items():
        origin = config.row_origin(table, name)
        if origin:
            yield Ingredient(f"row of {table}", name, str(origin))


def value_origin(config: Config, field: int, value: str) -> Origin | None:
    """Return the line of the matrix that lists a value of a field, or None."""
    dimension = config.project.recipe.dimensions[field]
    for index, couple in enumerate(config.matrix.couples):
        for row, values in enumerate(couple.rows):
            if field in couple.fields and values[couple.fields.index(field)] == value:
                return config.origin(f"matrix.couple[{index}].{dimension}[{row}]")
    if value in config.matrix.values[field]:
        index = config.matrix.values[field].index(value)
        path = f"matrix.{dimension}"
        return config.origins.get(f"{path}[{index}]", config.origin(path))
    return None


def _jobs_of(plan: Plan, cell: Cell) -> list[Job]:
    """Return the jobs that make and test a cell, inputs first."""
    return plan.with_inputs(plan.find(stage, cell.path).number for stage in CELL_STAGES)


def ingredients(plan: Plan, job: Job) -> Iterator[Ingredient]:
    """Yield everything that a job's fingerprint covers, as text."""
    recipe = plan.config.project.recipe
    revision = f"{job.stage}, revision {recipe.revision(job.stage)}"
    yield Ingredient("stage", revision, "torchyard")
    yield Ingredient("scope", job.path or "everything", "plan")
    yield Ingredient("recipe", recipe.name, str(plan.config.origin("project.recipe")))
    for name, sources in job.settings.history.items():
        yield Ingredient(name, sources[-1].text, str(sources[-1].origin))
    for number in job.inputs:
        source = plan.jobs[number]
        yield Ingredient("input", source.fingerprint, source.identifier)
