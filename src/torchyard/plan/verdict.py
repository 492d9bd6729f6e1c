"""Why one cell is in the plan or not, rule by rule: the law that :mod:`expand` applies in bulk."""

from typing import NamedTuple

from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.recipe import Dimension
from torchyard.model.tables import Tables
from torchyard.model.values import Origin
from torchyard.model.yard import Yard
from torchyard.plan.possible import impossible, unreleased

TABLES = Origin("tables")


class Absence(NamedTuple):
    """Why cells are not planned."""

    reason: str
    origin: Origin


def verdict(cell: Cell, yard: Yard, tables: Tables) -> Absence | None:
    """Say why a cell of known values is not in the plan, or nothing if it is."""
    included = any(rule.matches(cell) for rule in yard.matrix.include)
    absence = None if included else _outside(cell, yard)
    if absence:
        return absence
    kind = tables.packages[cell.package]
    head = cell[:3]
    reason = impossible(head, yard, tables)
    if not reason and kind.pinned and yard.project.recipe.variant is Dimension.TORCH:
        reason = unreleased(head, yard, tables)
    if not reason and kind.per_python == (cell.python == ANY_PYTHON):
        how = "made for each Python" if kind.per_python else "the same for every Python"
        reason = f"a {cell.package} is {how}, so there is none for `{cell.python}`"
    if reason:
        return Absence(reason, TABLES)
    for rule in () if included else yard.matrix.exclude:
        if rule.pattern.matches(cell):
            return Absence(rule.reason, rule.origin)
    return None


def _outside(cell: Cell, yard: Yard) -> Absence | None:
    """Say why the product of the dimensions does not reach a cell."""
    dimensions = yard.project.recipe.dimensions
    for field, dimension in enumerate(dimensions):
        value = cell[field]
        free = dimension is Dimension.PYTHON and value == ANY_PYTHON
        if value not in yard.matrix.values[field] and not free:
            couples = [couple for couple in yard.matrix.couples if field in couple.fields]
            origin = couples[0].origin if couples else yard.origin(f"matrix.{dimension}")
            return Absence(f"[matrix] has no {dimension} `{value}`", origin)
    for couple in yard.matrix.couples:
        if not couple.admits(cell):
            values = " with ".join(cell[field] for field in couple.fields)
            return Absence(f"no couple has {values}", couple.origin)
    return None
