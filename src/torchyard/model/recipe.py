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
    """A dimension of the matrix. `blas`, `torch` and `variant` are the same field of a cell."""

    PLATFORM = "platform"
    COMPUTE = "compute"
    BLAS = "blas"
    TORCH = "torch"
    VARIANT = "variant"
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
"""The number of leading fields of a cell that a stage's jobs depend on."""


class Recipe(Value, kw_only=True):
    """The shape of a kind of project; `torchyard.recipes` has the steps of its jobs.

    A stage whose jobs start to give different results from the same inputs gets a new revision,
    which is part of that stage's fingerprints. `packages` are the kinds of packages that it can
    make, all if empty. A `provisioned` recipe has its own compiling steps, which use torchyard's
    toolchain; for others, the file has the commands. `build_tree` is the directory of a core's
    result that only bindings jobs need. `project` and `repository` are what `init` proposes.
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
        """Whether its projects are compiled against the torch of their cells."""
        return self.variant is Dimension.TORCH

    @property
    def is_rendered(self) -> bool:
        """Whether its cells are the outputs of a conda recipe, which other files do not name."""
        return self.variant is Dimension.VARIANT

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
