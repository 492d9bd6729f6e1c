"""Make the jobs of the planned cells, each with its inputs and its fingerprint."""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby

from torchyard.errors import PlanError
from torchyard.model.canonical import fingerprint
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell, Identifier, job_identifier, scope_path
from torchyard.model.job_spec import Payload
from torchyard.model.recipe import CELL_STAGES, DEPTH, Stage
from torchyard.model.recipe_output import CONDA_FORMAT, RecipeOutput
from torchyard.plan.admission import newest_served
from torchyard.plan.constraints import Head, Scope
from torchyard.plan.expand import expand
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import EVERYTHING, PlanSelection, ReadSelection
from torchyard.plan.select_jobs import select_jobs
from torchyard.plan.settings import Settings, SettingsMaker


def make_plan(config: Config, selection: PlanSelection = EVERYTHING) -> Plan:
    """Plan a config, or the part of it that is selected."""
    expansion = expand(config)
    builder = _Builder(config)
    builder.add_source()
    read = ReadSelection(expansion, selection)
    if config.recipe_outputs:
        builder.add_outputs(list(read.cells()))
    else:
        for head, cells in groupby(read.cells(), key=_head):
            builder.add_block(head, list(cells))
    if not read.narrows_cells:
        builder.add_publish(selection.subset)
    partial = bool(selection.select or selection.skip)
    plan = Plan(expansion, builder.jobs, subset=selection.subset, partial=partial)
    return select_jobs(plan, read)


def make_plan_with(config: Config, identifier: Identifier) -> Plan:
    """Return the plan of an identifier: a channel publishes the plan of its subset."""
    channel = config.channels.get(identifier.path) if identifier.stage is Stage.PUBLISH else None
    return make_plan(config, PlanSelection(channel.subset if channel else None))


def _head(cell: Cell) -> Head:
    return cell[:3]


def _in_order(needs: Mapping[Scope, Iterable[Scope]]) -> list[Scope]:
    """Return the builds of a conda recipe, each after those that it needs."""
    try:
        return [*TopologicalSorter(needs).static_order()]
    except CycleError as error:
        names = " → ".join(scope_path(scope) for scope in error.args[1])
        msg = f"builds of the recipe need each other: {names}"
        raise PlanError(msg, hint="torchyard builds all outputs of a variant together") from error


def _with_inputs(scopes: Iterable[Scope], needs: Mapping[Scope, Iterable[Scope]]) -> set[Scope]:
    """Return builds of a conda recipe with all that they need."""
    found: set[Scope] = set()
    left = [*scopes]
    while left:
        scope = left.pop()
        if scope not in found:
            found.add(scope)
            left += needs[scope]
    return found


class _Builder:
    """Appends jobs to a plan. A job refers to its inputs by their numbers."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tables = config.tables
        self.jobs: list[Job] = []
        self._settings = SettingsMaker(config)

    def add_source(self) -> None:
        self._add(Stage.SOURCE, (), (), self._settings.of_source())

    def add_publish(self, subset: str | None) -> None:
        """Add a job for each channel that receives exactly this plan."""
        proven = [job.number for job in self.jobs if job.stage in CELL_STAGES]
        for channel in self.config.channels.values():
            if channel.receives(subset):
                settings = self._settings.of_publish(channel)
                self._add(Stage.PUBLISH, (channel.name,), proven, settings)

    def add_block(self, head: Head, cells: Sequence[Cell]) -> None:
        """Add the core of a block, its bindings for each Python, and its packages."""
        shared = [self.jobs[0].number]
        if Stage.CORE in self.config.project.recipe.stages:
            shared.append(self._add_scoped(Stage.CORE, head, shared))
        made_from = {ANY_PYTHON: shared[-1:]}
        for python in dict.fromkeys(cell.python for cell in cells):
            if python != ANY_PYTHON:
                bindings = self._add_scoped(Stage.BINDINGS, (*head, python), shared)
                made_from[python] = [*shared[1:], bindings]
        for cell in cells:
            self._add_cell(cell, made_from[cell.python])

    def add_outputs(self, cells: Sequence[Cell]) -> None:
        """Add cells of a conda recipe: the builds of their outputs, each after those it needs."""
        outputs = {output.cell: output for output in self.config.recipe_outputs}
        builds: dict[Scope, list[RecipeOutput]] = {}
        for output in outputs.values():
            builds.setdefault(output.scope, []).append(output)
        needs = {scope: {n for out in made for n in out.needs} for scope, made in builds.items()}
        wanted = _with_inputs((scope for cell in cells for scope in outputs[cell].uses), needs)
        jobs: dict[Scope, int] = {}
        for scope in _in_order(needs):
            if scope in wanted:
                inputs = [self.jobs[0].number, *(jobs[other] for other in sorted(needs[scope]))]
                stage = Stage.CORE if len(scope) == DEPTH[Stage.CORE] else Stage.BINDINGS
                settings = self._settings.of_conda(stage, scope, builds[scope])
                jobs[scope] = self._add(stage, scope, inputs, settings)
        for cell in cells:
            output = outputs[cell]
            settings = self._settings.of_conda(Stage.PACKAGE, cell, [output])
            package = self._add(Stage.PACKAGE, cell, [jobs[output.scope]], settings)
            self._add_scoped(Stage.CHECK, cell, [package], CONDA_FORMAT)
            beside = (jobs[scope] for scope in output.uses)
            settings = self._settings.of_conda(Stage.SMOKE, cell, [output])
            self._add(Stage.SMOKE, cell, [*beside, package], settings)

    def _add_cell(self, cell: Cell, made_from: Iterable[int]) -> None:
        """Add the jobs that package, check and smoke a cell."""
        form = self.tables.packages[cell.package].format
        package = self._add_scoped(Stage.PACKAGE, cell, made_from, form)
        self._add_scoped(Stage.CHECK, cell, [package], form)
        tried = [package]
        if self.tables.formats[form].split and Stage.SMOKE not in self.config.steps:
            # It needs other packages of the same build, too; the smoke job makes them itself.
            tried = [*made_from, package]
        self._add_scoped(Stage.SMOKE, cell, tried, form)
        newest = newest_served(cell, self.config)
        if newest != cell:  # test the package with the newest torch that it serves, too
            self._add(Stage.SMOKE, newest, tried, self._settings.of_served(newest, form))

    def _add_scoped(
        self, stage: Stage, scope: Scope, inputs: Iterable[int], form: str | None = None
    ) -> int:
        """Add a job of a block, of its Python or of a cell, and return the job's number."""
        return self._add(stage, scope, inputs, self._settings.of(stage, scope, form))

    def _add(self, stage: Stage, scope: Scope, inputs: Iterable[int], settings: Settings) -> int:
        recipe = self.config.project.recipe
        number, path, inputs = len(self.jobs), scope_path(scope), tuple(inputs)
        payload = Payload(
            inputs=sorted([self.jobs[number].fingerprint for number in inputs]),
            recipe=recipe.name,
            scope=path,
            settings=settings.values,
            stage=stage,
            stage_revision=recipe.revision(stage),
        )
        identifier = job_identifier(stage, self.config.project.label, path)
        self.jobs.append(
            Job(number, stage, scope, identifier, fingerprint(payload), inputs, settings)
        )
        return number
