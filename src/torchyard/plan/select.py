"""Select cells of a matrix: subsets by name, others by glob."""

from collections.abc import Iterable
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import Cell
from torchyard.model.matrix import Subset, matches
from torchyard.model.suggest import did_you_mean
from torchyard.plan.cover import cover_pairs
from torchyard.plan.expand import Expansion

_SEE = "`torchyard plan --identifiers` lists what there is"


class PlanSelection(NamedTuple):
    """The part of a plan that is asked for.

    A selector is a glob over identifiers. With a `:` it is about jobs, otherwise about cells; one
    without a `/` is compared with each value of a cell, so that `cu130` and `cp31*` work, too.
    Several `select` are a union, less all that some `skip` matches; a subset limits both.
    """

    subset: str | None = None
    select: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    @property
    def selects_jobs(self) -> bool:
        return any(map(names_jobs, self.select))

    @property
    def narrows_cells(self) -> bool:
        """Whether only a part of the cells is wanted; such a plan is not published."""
        return bool(self.select and not self.selects_jobs) or not all(map(names_jobs, self.skip))


EVERYTHING = PlanSelection()


def names_jobs(selector: str) -> bool:
    return ":" in selector


def cell_matches(cell: Cell, label: str, selector: str) -> bool:
    """Return whether a selector matches a cell's identifier, one of its values, or `cu130-mkl`."""
    if "/" in selector:
        return matches(f"{label}/{cell.path}", selector)
    return any(matches(word, selector) for word in (*cell, f"{cell.compute}-{cell.variant}"))


def find_subset(config: Config, name: str) -> Subset:
    if name not in config.subsets:
        msg = f"there is no subset `{name}`"
        hint = (
            did_you_mean(name, config.subsets) if config.subsets else "the file has no [subset.…]"
        )
        raise SelectionError(msg, hint=hint)
    return config.subsets[name]


def in_subset(cell: Cell, config: Config, subset: Subset) -> bool:
    label = config.project.label
    named = not subset.cells or _any_selector(cell, label, subset.cells)
    return subset.pattern.matches(cell) and named


def matching_cells(expansion: Expansion, selection: PlanSelection) -> list[Cell]:
    """Return the selected cells; raise SelectionError if there are none, or a selector finds none.

    Selectors that name jobs are ignored.
    """
    config = expansion.config
    label = config.project.label
    cells = expansion.cells
    if selection.subset is not None:
        subset = find_subset(config, selection.subset)
        _check_selectors(expansion, subset.cells)
        cells = [cell for cell in cells if in_subset(cell, config, subset)]
        if subset.choose == "pairs":
            cells = cover_pairs(cells)
    if selection.select and not selection.selects_jobs:
        _check_selectors(expansion, selection.select)
        cells = [cell for cell in cells if _any_selector(cell, label, selection.select)]
    skip = [selector for selector in selection.skip if not names_jobs(selector)]
    _check_selectors(expansion, skip)
    cells = [cell for cell in cells if not _any_selector(cell, label, skip)]
    if not cells:
        within = f" in subset `{selection.subset}`" if selection.subset else ""
        msg = f"the selection is empty: no cell is left{within}"
        raise SelectionError(msg, hint=_SEE)
    return cells


def select_cells(expansion: Expansion, selection: PlanSelection) -> list[Cell]:
    """Return the selected cells without planning their jobs, which is quicker."""
    for selector in (*selection.select, *selection.skip):
        if names_jobs(selector):
            msg = f"`{selector}` selects jobs, but cells are listed"
            raise SelectionError(msg, hint="`torchyard plan --jobs` lists jobs")
    return matching_cells(expansion, selection)


def _any_selector(cell: Cell, label: str, selectors: Iterable[str]) -> bool:
    return any(cell_matches(cell, label, selector) for selector in selectors)


def _check_selectors(expansion: Expansion, selectors: Iterable[str]) -> None:
    """Raise SelectionError for a selector that matches no cell of the whole matrix."""
    label = expansion.config.project.label
    for selector in selectors:
        if not any(cell_matches(cell, label, selector) for cell in expansion.cells):
            values = dict.fromkeys(value for column in expansion.values for value in column)
            hint = _SEE if "/" in selector else did_you_mean(selector, values)
            msg = f"`{selector}` matches no cell"
            raise SelectionError(msg, hint=hint)
