"""The interface of a recipe: what its module says about jobs. It runs nothing."""

from typing import Protocol

from torchyard.model.job_spec import JobSpec
from torchyard.model.step import Step


class RecipeModule(Protocol):
    """How the jobs of one kind of project are done, as functions of a module.

    The stages source, check, smoke and publish are the same for every recipe. The shape of a recipe
    (`torchyard.model.recipe.Recipe`) is a table in `data/recipes`, or the `SHAPE` of a plug-in.
    """

    def steps(self, order: JobSpec) -> tuple[Step, ...] | None:
        """Return the steps of a job; None if the file has to give them."""

    def environment(self, order: JobSpec) -> dict[str, str]:
        """Return the variables by which the project's build is told what to do.

        Only a recipe that is `provisioned` is asked: its compiling steps see these besides the
        toolchain's own.
        """
