"""Stages, and which of them each kind of project goes through."""

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


class Recipe(Value, kw_only=True):
    """The shape of a kind of project; how its jobs are carried out is not known here.

    A new `revision` says that the same inputs now give another result: it is part of every
    fingerprint.
    """

    name: str
    revision: int
    variant: Dimension
    stages: tuple[Stage, ...]

    @property
    def label(self) -> str:
        return f"{self.name}/{self.revision}"

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


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(name="pytorch", revision=1, variant=Dimension.BLAS, stages=tuple(Stage)),
        Recipe(
            name="extension",
            revision=1,
            variant=Dimension.TORCH,
            stages=tuple(stage for stage in Stage if stage is not Stage.CORE),
        ),
    )
}
