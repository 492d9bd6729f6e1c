"""The interface of a recipe's module: steps and variables of jobs. It runs nothing."""

from typing import NamedTuple, Protocol

from torchyard.model.job_spec import JobSpec
from torchyard.model.step import OWN, Step


class DevelopSteps(NamedTuple):
    """How a tree is developed in that has a restored core, in the order in which these are run.

    `bind` makes CMake find the cell's Python; then ninja builds, and after it the steps of
    `install` put what it made where Python imports it from. `describe` comes once, at the end: it
    puts the metadata of the project into `{work}/tmp/metadata`.
    """

    bind: tuple[Step, ...]
    prepare: tuple[Step, ...]
    install: tuple[Step, ...]
    describe: Step


class RecipeModule(Protocol):
    """How to build one kind of project, as functions of a module.

    The stages source, check, smoke and publish are the same for every recipe. The shape of a recipe
    (`torchyard.model.recipe.Recipe`) is a table in `data/recipes`, or the `SHAPE` of a plug-in.

    A recipe with a core may also have a function `develop`, from a JobSpec to DevelopSteps.
    """

    def steps(self, spec: JobSpec) -> tuple[Step, ...] | None:
        """Return the steps of a job; None if the file has to give them."""

    def environment(self, spec: JobSpec) -> dict[str, str]:
        """Return the variables that configure the project's build.

        Called only for recipes that are `provisioned`: their compiling steps get these variables
        besides those of the toolchain.
        """


def tool(words: str, name: str) -> Step:
    """Return a step that runs a command of `torchyard tool`."""
    return Step(run=(*OWN, "tool", *words.split()), name=name)


def promise_steps(spec: JobSpec, *folders: str) -> tuple[Step, ...]:
    """Return the step that compares libraries in folders with the glibc that the file promises."""
    glibc = spec.compiled.text("glibc")
    if not glibc:
        return ()
    words = f"check-glibc {glibc} {' '.join(folders)}"
    return (tool(words, f"compare what it needs with glibc {glibc}"),)
