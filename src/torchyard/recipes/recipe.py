"""The interface of a recipe's module: steps and variables of jobs. It runs nothing."""

from typing import Protocol

from torchyard.model.job_spec import JobSpec
from torchyard.model.step import Step


class RecipeModule(Protocol):
    """How to build one kind of project, as functions of a module.

    The stages source, check, smoke and publish are the same for every recipe. The shape of a recipe
    (`torchyard.model.recipe.Recipe`) is a table in `data/recipes`, or the `SHAPE` of a plug-in.
    """

    def steps(self, order: JobSpec) -> tuple[Step, ...] | None:
        """Return the steps of a job; None if the file has to give them."""

    def environment(self, order: JobSpec) -> dict[str, str]:
        """Return the variables that configure the project's build.

        Called only for recipes that are `provisioned`: their compiling steps get these variables
        besides those of the toolchain.
        """
