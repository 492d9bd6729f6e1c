"""The interface of a recipe's module: steps and variables of jobs. It runs nothing."""

from typing import NamedTuple, Protocol

from torchyard.model.job_spec import JobSpec
from torchyard.model.step import OWN, SHELL, Step
from torchyard.package.sbom.component import FACTS


class DevelopSteps(NamedTuple):
    """Steps for developing in a tree with a restored core, in this order.

    `bind` makes CMake find the cell's Python; then ninja builds, and `install` puts the results
    where Python imports them from. `describe` runs once, at the end: it writes the project's
    metadata to `{work}/tmp/metadata`.
    """

    bind: tuple[Step, ...]
    prepare: tuple[Step, ...]
    install: tuple[Step, ...]
    describe: Step


class RecipeModule(Protocol):
    """A recipe's module: functions that build one kind of project.

    All recipes share the stages source, check, smoke and publish. The shape of a recipe
    (`torchyard.model.recipe.Recipe`) is a table in `data/recipes`, or the `SHAPE` of a plug-in.

    A recipe with a core may also have a function `develop` from JobSpec to DevelopSteps.
    """

    def steps(self, spec: JobSpec) -> tuple[Step, ...] | None:
        """Return the steps of a job, or None if the file must give them."""

    def environment(self, spec: JobSpec) -> dict[str, str]:
        """Return the variables that configure the project's build.

        Called only for recipes that are `provisioned`: their compiling steps get these variables
        besides those of the toolchain.
        """


def tool(words: str, name: str) -> Step:
    """Return a step that runs a command of `torchyard tool`."""
    return Step(run=(*OWN, "tool", *words.split()), name=name)


def lay_out_step(line: str, name: str = "lay the source out") -> Step:
    """Return a step whose shell line only copies the job's inputs into its directory."""
    return Step(run=(*SHELL, line), name=name, copies="inputs")


def inventory_step(folder: str, more: str = "") -> Step:
    """Return the step that lists what the libraries in a folder are made of."""
    return tool(f"inventory {folder} --to {{out}}/{FACTS} {more}", "list what is in it")


def promise_steps(spec: JobSpec, *folders: str) -> tuple[Step, ...]:
    """Return the step that checks libraries in folders against the file's promised glibc."""
    glibc = spec.compiled.text("glibc")
    if not glibc:
        return ()
    words = f"check-glibc {glibc} {' '.join(folders)}"
    return (tool(words, f"compare what it needs with glibc {glibc}"),)
