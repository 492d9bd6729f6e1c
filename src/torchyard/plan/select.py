"""Select cells of a matrix: subsets by name, others by selectors."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import Cell
from torchyard.model.matrix import Subset
from torchyard.model.recipe import Stage
from torchyard.model.selector import Name, NameSelector
from torchyard.model.suggest import did_you_mean
from torchyard.plan.cover import cover_pairs
from torchyard.plan.expand import Expansion


class PlanSelection(NamedTuple):
    """The requested part of a plan, as it was typed.

    `select` is one selector, `skip` is a list of selectors; a subset limits both.
    """

    subset: str | None = None
    select: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


EVERYTHING = PlanSelection()


class ReadSelection:
    """A selection, read as a part of one matrix."""

    def __init__(self, expansion: Expansion, selection: PlanSelection) -> None:
        self.expansion = expansion
        self.subset = selection.subset
        self.select = selector_of(expansion, selection.select)
        self.skip = [selector_of(expansion, [text]) for text in selection.skip]

    @property
    def of_jobs(self) -> bool:
        return any(selector.of_jobs for selector in (self.select, *self.skip))

    @property
    def narrows_cells(self) -> bool:
        """Whether only a part of the cells is selected; such a plan is not published."""
        return self.select.narrows_cells or any(not selector.of_jobs for selector in self.skip)

    def cells(self) -> list[Cell]:
        """Return the selected cells, and the cells of selected jobs.

        Raises:
            SelectionError: There are none.
        """
        config, cells = self.expansion.config, self.expansion.cells
        if self.subset is not None:
            subset = find_subset(config, self.subset)
            is_member = subset_test(self.expansion, subset)
            cells = [cell for cell in cells if is_member(cell)]
            if subset.choose == "pairs":
                cells = cover_pairs(cells)
        if self.select.words:
            wanted = _servers(self.expansion, self.select)
            cells = [cell for cell in cells if cell in wanted or self._is_in(cell, self.select)]
        for selector in self.skip:
            cells = [cell for cell in cells if selector.of_jobs or not self._is_in(cell, selector)]
        if not cells:
            within = f" in subset `{self.subset}`" if self.subset else ""
            words = f" that is `{self.select}`" if self.select.words else ""
            msg = f"the selection is empty: no cell is left{words}{within}"
            raise SelectionError(msg, hint="`torchyard plan --list cells` lists all cells")
        return cells

    def _is_in(self, cell: Cell, selector: NameSelector) -> bool:
        return selector.matches(Name.of(None, self.expansion.config.project.label, cell))


def selector_of(
    expansion: Expansion, texts: Iterable[str], extra: Iterable[Name] = ()
) -> NameSelector:
    """Return words as a selector of a matrix's cells and jobs; `extra` are further names."""
    texts = list(texts)
    return NameSelector(texts, [*_names(expansion), *extra] if texts else ())


def _names(expansion: Expansion) -> Iterator[Name]:
    config, label = expansion.config, expansion.config.project.label
    for cell in (*expansion.cells, *_served(expansion)):
        yield Name.of(None, label, cell)
    for stage in config.project.recipe.stages:
        yield Name(stage, label)
    for channel in config.channels:
        yield Name.of(Stage.PUBLISH, label, (channel,))


def _served(expansion: Expansion) -> dict[Cell, Cell]:
    """Return the cells without a package of their own, each with the cell that serves it."""
    return {
        absent.cell: Cell.from_path(absent.absence.server)
        for absent in expansion.absent
        if absent.absence.server
    }


def _servers(expansion: Expansion, selector: NameSelector) -> set[Cell]:
    label = expansion.config.project.label
    served = _served(expansion).items()
    return {by for cell, by in served if selector.matches(Name.of(None, label, cell))}


def find_subset(config: Config, name: str) -> Subset:
    if name not in config.subsets:
        msg = f"there is no subset `{name}`"
        hint = (
            did_you_mean(name, config.subsets) if config.subsets else "the file has no [subset.…]"
        )
        raise SelectionError(msg, hint=hint)
    return config.subsets[name]


def subset_test(expansion: Expansion, subset: Subset) -> Callable[[Cell], bool]:
    """Return a function that tests whether a cell, planned or not, is in a subset."""
    selector, label = selector_of(expansion, subset.cells), expansion.config.project.label
    return lambda cell: (
        subset.pattern.matches(cell) and selector.matches(Name.of(None, label, cell))
    )


def warnings(expansion: Expansion) -> Iterator[str]:
    """Yield a warning for each rule without effect and each value without cells."""
    config = expansion.config
    for rule in config.matrix.exclude:
        if not expansion.effect(rule):
            yield f"the exclusion at {rule.origin} has no effect: its cells are left out already"
    for inclusion in config.matrix.include:
        if not expansion.effect(inclusion):
            yield f"the inclusion at {inclusion.origin} has no effect: its cells are there already"
    for override in config.overrides:
        if not any(override.pattern.matches(cell) for cell in expansion.cells):
            yield f"the override at {override.origin} applies to no cell"
    for name in config.subsets:
        try:
            ReadSelection(expansion, PlanSelection(name)).cells()
        except SelectionError:
            yield f"the subset `{name}` has no cell ({config.origin(f'subset.{name}')})"
    yield from _unused_values(expansion)


def _unused_values(expansion: Expansion) -> Iterator[str]:
    served = (absent.cell for absent in expansion.absent if absent.absence.server)
    cells = [*expansion.cells, *served]
    for field, dimension in enumerate(expansion.config.project.recipe.dimensions):
        seen = {cell[field] for cell in cells}
        for value in expansion.values[field]:
            if value not in seen:
                yield f"no cell has {dimension} `{value}`"
