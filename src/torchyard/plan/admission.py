"""Whether a cell is planned, and if not, why: the only implementation of a matrix's rules."""

from collections.abc import Sequence
from typing import NamedTuple

from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.matrix import Exclusion, Inclusion
from torchyard.model.recipe import Dimension
from torchyard.model.values import Origin
from torchyard.plan.constraints import impossible, unreleased, without_python

TABLES = Origin("tables")


class Absence(NamedTuple):
    """Why a cell is not planned."""

    reason: str
    origin: Origin


class Admission(NamedTuple):
    """Whether a cell is planned, and which rule decides that."""

    absence: Absence | None
    rule: Exclusion | Inclusion | None = None
    """The exclusion that leaves the cell out, or the inclusion without which it would be absent."""
    wanted: bool = True
    """Whether the product of the dimensions or an inclusion contains the cell."""


def admit(cell: Cell, config: Config) -> Admission:
    """Decide on a cell of known values: tables rule out, inclusions overrule exclusions."""
    outside = outside_product(cell, config)
    inclusion = next((rule for rule in config.matrix.include if rule.matches(cell)), None)
    if outside and not inclusion:
        return Admission(outside, wanted=False)
    reason = _ruled_out(cell, config)
    if reason:
        return Admission(Absence(reason, TABLES))
    exclusion = next((rule for rule in config.matrix.exclude if rule.pattern.matches(cell)), None)
    if inclusion:
        return Admission(None, inclusion if outside or exclusion else None)
    if exclusion:
        return Admission(Absence(exclusion.reason, exclusion.origin), exclusion)
    return Admission(None)


def outside_product(scope: Sequence[str], config: Config) -> Absence | None:
    """Return why the product of the dimensions has no cell that begins with `scope`, or None."""
    matrix = config.matrix
    for field, (dimension, value) in enumerate(
        zip(config.project.recipe.dimensions, scope, strict=False)
    ):
        free = dimension is Dimension.PYTHON and value == ANY_PYTHON
        if value not in matrix.values[field] and not free:
            couples = [couple for couple in matrix.couples if field in couple.fields]
            origin = couples[0].origin if couples else config.origin(f"matrix.{dimension}")
            return Absence(f"[matrix] has no {dimension} `{value}`", origin)
    for couple in matrix.couples:
        if not couple.admits(scope):
            values = " with ".join(scope[field] for field in couple.fields if field < len(scope))
            return Absence(f"no couple has {values}", couple.origin)
    return None


def _ruled_out(cell: Cell, config: Config) -> str | None:
    """Return why the tables do not allow a cell, or None if they do."""
    kind = config.tables.packages[cell.package]
    reason = kind.obstacle or impossible(cell[:3], config)
    if not reason and kind.pinned and config.project.recipe.variant is Dimension.TORCH:
        reason = unreleased(cell[:3], config) or without_python(cell, config)
    if not reason and kind.gpu_only and not config.tables.compute[cell.compute].is_gpu:
        reason = f"{cell.package} is made for GPUs only: {kind.gpu_only}"
    if not reason and kind.per_python == (cell.python == ANY_PYTHON):
        how = "made for each Python" if kind.per_python else "the same for every Python"
        reason = f"a {cell.package} is {how}, so there is none for `{cell.python}`"
    return reason
