"""Expand a matrix into planned cells and excluded cells."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from torchyard.errors import PlanError
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.matrix import Exclusion, Inclusion, Matrix
from torchyard.plan.admission import Absence, admit, outside_product
from torchyard.plan.constraints import Head, unreleased


class AbsentCell(NamedTuple):
    """A cell of the matrix that an exclusion or a table leaves out."""

    cell: Cell
    absence: Absence


class Expansion:
    """The cells of a matrix, in the order in which the file lists the values."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.values = _universe(config.matrix)
        """The values of each field: those of the matrix, then those of inclusions only."""
        self.cells: list[Cell] = []
        self.absent: list[AbsentCell] = []
        self._effects: Counter[int] = Counter()
        for head in self._heads():
            for pair in self.pairs:
                self._add(Cell(*head, *pair))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The last two fields of cells: a Python, or `any`, and a package."""
        *_, pythons, packages = self.values
        kinds = self.config.tables.packages
        return (
            *product(pythons, (name for name in packages if kinds[name].per_python)),
            *((ANY_PYTHON, name) for name in packages if not kinds[name].per_python),
        )

    def effect(self, rule: Exclusion | Inclusion) -> int:
        """Return how many cells a rule leaves out of the matrix, or adds to it."""
        return self._effects[id(rule)]

    def _heads(self) -> Iterator[Head]:
        """Yield the platforms, computes and variants of wanted cells."""
        platforms, computes, variants, *_ = self.values
        for head in product(platforms, computes, variants):
            included = any(rule.matches(head) for rule in self.config.matrix.include)
            if included or not outside_product(head, self.config):
                yield head

    def _add(self, cell: Cell) -> None:
        absence, rule, wanted = admit(cell, self.config)
        if rule:
            self._effects[id(rule)] += 1
        if absence is None:
            self.cells.append(cell)
        elif wanted:
            self.absent.append(AbsentCell(cell, absence))


def _universe(matrix: Matrix) -> tuple[tuple[str, ...], ...]:
    columns = zip(matrix.values, *(rule.pattern.globs for rule in matrix.include), strict=True)
    return tuple(
        tuple(dict.fromkeys(value for values in column for value in values if value != ANY_PYTHON))
        for column in columns
    )


def expand(config: Config) -> Expansion:
    """Expand a config's matrix; raise PlanError if it is empty or names unknown libraries."""
    expansion = Expansion(config)
    if not expansion.cells:
        reasons = dict.fromkeys(absent.absence.reason for absent in expansion.absent)
        msg = "the matrix is empty: every cell is left out"
        hint = "because " + "; ".join(reasons) if reasons else None
        raise PlanError(msg, hint=hint)
    for cell in expansion.cells:
        if config.tables.packages[cell.package].pinned:
            _check_release(cell, config)
    return expansion


def _check_release(cell: Cell, config: Config) -> None:
    """Fail if the torch release has no libraries for the compute of a package."""
    reason = unreleased(cell[:3], config)
    if reason:
        releases = config.tables.releases.items()
        names = [name for name, row in releases if cell.compute in row.libraries]
        msg = f"{reason}, so the libraries of {cell.path} are unknown"
        hint = (
            "`torchyard config update --write` reads new releases from an index into [tables]; or "
            "exclude such cells, or name a release whose libraries to use: "
            f"[project] release = {' or '.join(names)}"
        )
        raise PlanError(msg, hint=hint)
