"""The outputs of a conda recipe in its variants: the cells of recipe `conda`."""

from typing import NamedTuple

from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import DEPTH, Stage

CONDA_FORMAT = "conda"
"""The format of what a conda recipe makes."""

RECIPE_CHANNELS = "recipe_channels"
"""The setting with the channels of jobs of a conda recipe."""

BuildScope = tuple[str, ...]
"""The first fields of the cells that one job builds together: with a Python, or without."""


class RecipeOutput(NamedTuple):
    """An output of a conda recipe in one of its variants.

    `needs` are the builds with outputs that its build requires; `uses` are its own, and those with
    outputs that it requires once installed. `fetches` tells whether its sources are downloaded,
    `rattler_build` is the version that rendered it, and has to build it.
    """

    cell: Cell
    version: str
    build: str
    variant: dict[str, str]
    channels: tuple[str, ...]
    fetches: bool
    rattler_build: str
    needs: tuple[BuildScope, ...] = ()
    uses: tuple[BuildScope, ...] = ()

    @property
    def scope(self) -> BuildScope:
        """The scope of the job that builds it."""
        return build_scope(self.cell)


def build_scope(cell: Cell) -> BuildScope:
    """Return the scope of the job that builds a cell of a conda recipe."""
    stage = Stage.CORE if cell.python == ANY_PYTHON else Stage.BINDINGS
    return cell[: DEPTH[stage]]
