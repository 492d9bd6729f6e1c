"""How jobs are carried out: a task in, steps as values out."""

from torchyard.errors import PlanError
from torchyard.model.order import Task
from torchyard.model.recipe import Stage
from torchyard.model.step import Step
from torchyard.recipes.source import snapshot


def steps_of(task: Task) -> tuple[Step, ...]:
    """The steps of a job: the file's own if it gives some, else the recipe's."""
    given = task.settings.get("steps")
    if isinstance(given, tuple):
        return tuple(step for step in given if isinstance(step, Step))
    if task.stage is Stage.SOURCE:
        return snapshot(task)
    msg = f"recipe `{task.recipe}` does not know how to do stage `{task.stage}` of {task.id}"
    raise PlanError(msg, hint=f"give the commands in [[steps.{task.stage}]]")
