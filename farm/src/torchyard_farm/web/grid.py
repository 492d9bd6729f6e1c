"""The layout of a plan as a table: blocks, a row for each Python, and columns."""

from collections.abc import Sequence
from typing import NamedTuple

from torchyard.model.recipe import CELL_STAGES, Stage
from torchyard_farm.scheduling.plans import FarmPlan


class GridColumn(NamedTuple):
    """A stage, with the package if the stage has jobs for each package."""

    package: str
    stage: Stage


class GridRow(NamedTuple):
    """The row of a Python, or of the block itself, with the tasks by column."""

    name: str
    tasks: Sequence[int | None]


class GridBlock(NamedTuple):
    """All cells of one platform, compute platform and variant."""

    name: str
    cells: GridRow
    lines: Sequence[GridRow]

    @property
    def tasks(self) -> list[int]:
        lines = (self.cells, *self.lines)
        return [task for line in lines for task in line.tasks if task is not None]


class Grid(NamedTuple):
    """A plan as a table; `shared` are tasks of no block: the source, and publish jobs."""

    shared: Sequence[int]
    columns: Sequence[GridColumn]
    blocks: Sequence[GridBlock]


def plan_grid(plan: FarmPlan) -> Grid:
    """Return the table of a plan, in the plan's own order."""
    shared: list[int] = []
    columns: dict[GridColumn, None] = {}
    found: dict[str, dict[str, dict[GridColumn, int]]] = {}
    for number, task in enumerate(plan.tasks):
        parts = task.scope.split("/")
        if task.stage is Stage.PUBLISH or len(parts) == 1:
            shared.append(number)
            continue
        of = [task.facts["name"]] if plan.trial else []  # channels have more than one project
        block, python, package = "/".join(of + parts[:2]), *[*parts[2:], "", ""][:2]
        column = GridColumn(package, task.stage)
        columns[column] = None
        found.setdefault(block, {}).setdefault(python, {})[column] = number
    order = _in_order(list(columns))
    blocks = [
        GridBlock(name, _line("", lines, order), [_line(p, lines, order) for p in lines if p])
        for name, lines in found.items()
    ]
    return Grid(shared, order, blocks)


def _line(python: str, lines: dict[str, dict[GridColumn, int]], order: list[GridColumn]) -> GridRow:
    tasks = lines.get(python, {})
    return GridRow(python, [tasks.get(column) for column in order])


def _in_order(columns: list[GridColumn]) -> list[GridColumn]:
    """Return a key that sorts columns by stage, with those of a package adjacent."""
    stages = list(Stage)
    packages = list(dict.fromkeys(column.package for column in columns))
    return sorted(
        columns,
        key=lambda c: (c.stage in CELL_STAGES, packages.index(c.package), stages.index(c.stage)),
    )
