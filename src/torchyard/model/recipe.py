"""Stages, and the shape of recipes: which stages a kind of project has."""

from collections.abc import Mapping
from enum import StrEnum

from torchyard.model.values import Value


class Stage(StrEnum):
    """A step on the way from a commit to a published package."""

    SOURCE = "source"
    CORE = "core"
    BINDINGS = "bindings"
    PACKAGE = "package"
    CHECK = "check"
    SMOKE = "smoke"
    PUBLISH = "publish"


class Dimension(StrEnum):
    """A direction of the matrix. `blas` and `torch` take the same place in a cell."""

    PLATFORM = "platform"
    COMPUTE = "compute"
    BLAS = "blas"
    TORCH = "torch"
    PYTHON = "python"
    PACKAGE = "package"


CELL_STAGES = (Stage.PACKAGE, Stage.CHECK, Stage.SMOKE)
"""The stages with a separate job for every cell."""

DEPTH: Mapping[Stage, int] = {
    Stage.SOURCE: 0,
    Stage.CORE: 3,
    Stage.BINDINGS: 4,
    Stage.PACKAGE: 5,
    Stage.CHECK: 5,
    Stage.SMOKE: 5,
    Stage.PUBLISH: 0,
}
"""Number of leading fields of a cell that a stage's jobs depend on; the others share a job."""


class Recipe(Value, kw_only=True):
    """The shape of a kind of project; `torchyard.recipes` has the steps of its jobs.

    A stage whose jobs begin to give different results from the same inputs gets a new revision,
    which is part of the fingerprints of that stage. `packages` are the kinds of packages that it
    can make, all if empty. The compiling steps of a `provisioned` recipe are its
    own, and use a toolchain that torchyard provides; for others, the file gives the commands.
    `build_tree` is the directory of a core's result that only bindings jobs need.
    `project` and `repository` are what `torchyard init` proposes.
    """

    name: str
    title: str
    variant: Dimension
    stages: tuple[Stage, ...]
    revisions: dict[Stage, int] = {}
    packages: tuple[str, ...] = ()
    provisioned: bool = False
    build_tree: str = ""
    project: str = ""
    repository: str = ""

    def makes(self, package: str) -> bool:
        """Return whether the recipe can make a kind of package."""
        return not self.packages or package in self.packages

    def revision(self, stage: Stage) -> int:
        return self.revisions.get(stage, 1)

    @property
    def is_extension(self) -> bool:
        """Whether its projects are compiled against a torch, which is part of their cells."""
        return self.variant is Dimension.TORCH

    @property
    def compiling(self) -> Stage:
        """The stage at which the C++ code is compiled for a compute platform."""
        return Stage.CORE if Stage.CORE in self.stages else Stage.BINDINGS

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The five dimensions of this recipe's cells, in the order of an identifier."""
        return (
            Dimension.PLATFORM,
            Dimension.COMPUTE,
            self.variant,
            Dimension.PYTHON,
            Dimension.PACKAGE,
        )
