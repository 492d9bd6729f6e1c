"""Recipes: turn a job spec into the steps that run the job."""

from torchyard.config.recipes import find_recipe
from torchyard.errors import PlanError, StoreError
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import OWN, Step
from torchyard.recipes.proof import proof
from torchyard.recipes.publishing import publishing
from torchyard.recipes.registry import recipe_module

_SNAPSHOT = "tool snapshot --spec {spec} --file {file} --root={root} --to {out}"
_DONE = {
    "path": "copy the source",
    "archive": "unpack the source",
    "sdist": "unpack the sdist",
    "debian": "get the source package",
    "git": "check the source out",
}
"""The name of the step for each kind of source."""


def snapshot(spec: JobSpec) -> tuple[Step, ...]:
    """Return the step that fetches the source and its build's downloads, and patches the source."""
    task, source = spec.task, spec.task.source
    if source is None:
        msg = f"nothing says where the source of {task.id} comes from"
        raise StoreError(msg, hint="run it from its torchyard.toml")
    name = next(name for key, name in _DONE.items() if getattr(source, key) is not None)
    network = source.file is None or bool(source.also)
    return (Step(run=(*OWN, *_SNAPSHOT.split()), name=name, network=network),)


def steps_of(spec: JobSpec) -> tuple[Step, ...]:
    """Return the steps of a job: the file's if it has any, else the recipe's."""
    task = spec.task
    given = task.settings.get("steps")
    if isinstance(given, tuple):
        return tuple(step for step in given if isinstance(step, Step))
    if task.stage is Stage.SOURCE:
        return snapshot(spec)
    if task.stage in (Stage.CHECK, Stage.SMOKE):
        return proof(task)
    if task.stage is Stage.PUBLISH:
        return publishing(task)
    steps = recipe_module(task.recipe).steps(spec)
    if steps is not None:
        return steps
    msg = f"recipe `{task.recipe}` has no steps for stage `{task.stage}` of {task.id}"
    raise PlanError(msg, hint=f"give the commands in [[steps.{task.stage}]]")


def runs_only_ours(task: Task) -> bool:
    """Return whether a job runs no project code: it fetches the source, or publishes."""
    return task.stage in (Stage.SOURCE, Stage.PUBLISH) and "steps" not in task.settings


def is_tried_by_us(task: Task) -> bool:
    """Return whether a job tests a package with torchyard's own steps."""
    return task.stage is Stage.SMOKE and "steps" not in task.settings


def compiles_by_recipe(task: Task) -> bool:
    """Return whether a job compiles with a recipe's steps, and so with torchyard's toolchain."""
    if task.stage not in (Stage.CORE, Stage.BINDINGS) or "steps" in task.settings:
        return False
    recipe = find_recipe(task.recipe)
    return recipe is not None and recipe.provisioned
