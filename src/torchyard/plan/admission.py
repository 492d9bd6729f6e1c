"""Why one cell is in the plan or not, rule by rule: the law that :mod:`expand` applies in bulk."""

from typing import NamedTuple

from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import Dimension
from torchyard.model.tables import Tables
from torchyard.model.values import Origin
from torchyard.plan.constraints import impossible, unreleased

TABLES = Origin("tables")


class Absence(NamedTuple):
    """Why cells are not planned."""

    reason: str
    origin: Origin


def verdict(cell: Cell, config: Config, tables: Tables) -> Absence | None:
    """Say why a cell of known values is not in the plan, or nothing if it is."""
    included = any(rule.matches(cell) for rule in config.matrix.include)
    absence = None if included else _outside(cell, config)
    if absence:
        return absence
    kind = tables.packages[cell.package]
    head = cell[:3]
    reason = impossible(head, config, tables)
    if not reason and kind.pinned and config.project.recipe.variant is Dimension.TORCH:
        reason = unreleased(head, config, tables)
    if not reason and kind.per_python == (cell.python == ANY_PYTHON):
        how = "made for each Python" if kind.per_python else "the same for every Python"
        reason = f"a {cell.package} is {how}, so there is none for `{cell.python}`"
    if reason:
        return Absence(reason, TABLES)
    for rule in () if included else config.matrix.exclude:
        if rule.pattern.matches(cell):
            return Absence(rule.reason, rule.origin)
    return None


def _outside(cell: Cell, config: Config) -> Absence | None:
    """Say why the product of the dimensions does not reach a cell."""
    dimensions = config.project.recipe.dimensions
    for field, dimension in enumerate(dimensions):
        value = cell[field]
        free = dimension is Dimension.PYTHON and value == ANY_PYTHON
        if value not in config.matrix.values[field] and not free:
            couples = [couple for couple in config.matrix.couples if field in couple.fields]
            origin = couples[0].origin if couples else config.origin(f"matrix.{dimension}")
            return Absence(f"[matrix] has no {dimension} `{value}`", origin)
    for couple in config.matrix.couples:
        if not couple.admits(cell):
            values = " with ".join(cell[field] for field in couple.fields)
            return Absence(f"no couple has {values}", couple.origin)
    return None
