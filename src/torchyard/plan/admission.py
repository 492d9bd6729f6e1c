"""Decide whether a cell is planned, or why not: the only implementation of a matrix's rules."""

from collections.abc import Sequence
from operator import ge
from typing import NamedTuple

from torchyard.model.abi import AbiClass
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.matrix import Exclusion, Inclusion
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_PREFIX
from torchyard.model.values import Origin
from torchyard.plan.constraints import impossible, unreleased, without_python

TABLES = Origin("tables")


class Absence(NamedTuple):
    """Why a cell is not planned."""

    reason: str
    origin: Origin
    server: str = ""
    """The cell whose package serves it."""


class Admission(NamedTuple):
    """Whether a cell is planned, and the deciding rule."""

    absence: Absence | None
    rule: Exclusion | Inclusion | None = None
    """The exclusion that leaves the cell out, or the inclusion that it depends on."""
    wanted: bool = True
    """Whether the product of the dimensions or an inclusion contains the cell."""


def admit(cell: Cell, config: Config) -> Admission:
    """Decide on a cell of known values; it is not planned if another cell's package serves it."""
    admission = _decide(cell, config)
    server = cell if admission.absence else serving_cell(cell, config)
    if server == cell:
        return admission
    reason = f"served by {server.path}, as one wheel of ABI class {config.build.abi} fits both"
    absence = Absence(reason, config.origin("build.abi"), server.path)
    return admission._replace(absence=absence)


def serving_cell(cell: Cell, config: Config) -> Cell:
    """Return the cell whose package serves a cell: that of the oldest torch and Python."""
    if not _is_shared(cell, config):
        return cell
    return next(server for server in _family(cell, config) if _is_served(cell, server, config))


def newest_served(cell: Cell, config: Config) -> Cell:
    """Return the newest cell that the package of a cell serves, maybe that cell itself."""
    if not _is_shared(cell, config):
        return cell
    family = reversed(_family(cell, config))
    return next(served for served in family if serving_cell(served, config) == cell)


def _is_shared(cell: Cell, config: Config) -> bool:
    """Return whether a package may serve other cells; a split package serves only its own."""
    tables = config.tables
    is_split = tables.formats[tables.packages[cell.package].format].split
    return config.build.abi is not AbiClass.FULL and not is_split


def _family(cell: Cell, config: Config) -> list[Cell]:
    """Return the cells that one build could serve by its ABI class, oldest first.

    Free-threaded Pythons have no stable ABI.
    """
    abi, tables = config.build.abi, config.tables
    _, _, variants, pythons, _ = config.matrix.values
    locked = [name for name in pythons if not tables.pythons[name].free_threaded]
    folds_pythons = abi.fits_pythons and cell.python in locked
    cells = [
        cell._replace(variant=variant, python=python)
        for variant in (variants if abi.fits_torches else (cell.variant,))
        for python in (locked if folds_pythons else (cell.python,))
    ]
    admitted = [member for member in {*cells, cell} if _decide(member, config).absence is None]
    return sorted(admitted, key=lambda member: _age(member, config))


def _is_served(cell: Cell, server: Cell, config: Config) -> bool:
    """Return whether a cell's torch and Python are both at least as new as the server's."""
    return all(map(ge, _age(cell, config), _age(server, config)))


def _age(cell: Cell, config: Config) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the versions of a cell's torch and Python, for comparison."""
    torch = cell.variant.removeprefix(TORCH_PREFIX)
    return _numbers(torch), _numbers(config.tables.pythons[cell.python].version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _decide(cell: Cell, config: Config) -> Admission:
    """Decide by the rules of a matrix: tables come first, and inclusions override exclusions."""
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
    """Return why the product of the dimensions has no cell below `scope`, or None."""
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
    if not reason and kind.pinned and config.project.recipe.is_extension:
        reason = unreleased(cell[:3], config) or without_python(cell, config)
    if not reason and kind.gpu_only and not config.tables.compute[cell.compute].is_gpu:
        reason = f"{cell.package} is made for GPUs only: {kind.gpu_only}"
    if not reason and kind.per_python == (cell.python == ANY_PYTHON):
        how = "made for each Python" if kind.per_python else "the same for every Python"
        reason = f"a {cell.package} is {how}, so there is none for `{cell.python}`"
    return reason
