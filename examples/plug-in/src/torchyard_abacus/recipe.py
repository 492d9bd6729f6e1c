"""A recipe: a project of Python files alone, packed as they are."""

from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Dimension, Recipe, Stage
from torchyard.model.step import Step

SHAPE = Recipe(
    name="pure",
    title="packs Python files as they are",
    variant=Dimension.TORCH,
    stages=tuple(stage for stage in Stage if stage is not Stage.CORE),
    packages=("wheel",),
)


def steps(spec: JobSpec) -> tuple[Step, ...] | None:
    """Return the steps of a job, if it is one that only this recipe knows."""
    match spec.task.stage:
        case Stage.BINDINGS:
            return (Step(run=("cp", "-a", "{source}/.", "{out}"), name="take the files"),)
        case Stage.PACKAGE:
            pack = ("{self}", "-P", "-m", "torchyard_abacus.pack")
            run = (*pack, "{spec}", "{bindings}", "{out}")
            return (Step(run=run, name="pack the files", outputs=("*.whl",)),)
        case _:
            return None


def environment(_spec: JobSpec) -> dict[str, str]:
    """Return no variables: nothing is compiled."""
    return {}
