"""Choosing cells: subsets by name, others by glob."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.config import Config
from torchyard.model.identifier import Cell
from torchyard.model.matrix import Subset, matches
from torchyard.model.suggest import did_you_mean
from torchyard.plan.constraints import Head
from torchyard.plan.expand import Block, Expansion, bits

_SEE = "`torchyard plan --identifiers` lists what there is"


class Selection(NamedTuple):
    """What the command line asks for.

    A selector is a glob over identifiers. With a `:` it is about jobs, otherwise about cells; one
    without a `/` is compared with each value of a cell, so that `cu130` and `cp31*` do as well.
    What any `select` finds is taken, less what any `skip` finds; a subset limits both.
    """

    subset: str | None = None
    select: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    @property
    def selects_jobs(self) -> bool:
        return any(map(names_jobs, self.select))

    @property
    def narrows_cells(self) -> bool:
        """Whether only a part of the cells is wanted, which is nothing to publish."""
        return bool(self.select and not self.selects_jobs) or not all(map(names_jobs, self.skip))


EVERYTHING = Selection()


def names_jobs(selector: str) -> bool:
    return ":" in selector


def cell_matches(cell: Cell, label: str, selector: str) -> bool:
    """Whether a selector means a cell: by its identifier, one of its values, or `cu130-mkl`."""
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
    named = any(cell_matches(cell, label, selector) for selector in subset.cells)
    return subset.pattern.matches(cell) and (named or not subset.cells)


def select_blocks(expansion: Expansion, selection: Selection) -> Sequence[Block]:
    """Narrow the cells down to a selection, and complain of a selector that finds nothing."""
    blocks: Sequence[Block] = expansion.blocks
    if selection.subset is not None:
        subset = find_subset(expansion.config, selection.subset)
        blocks = _within(expansion, blocks, expansion.matcher(subset.pattern).at)
        if subset.cells:
            blocks = _within(expansion, blocks, _masks(expansion, subset.cells).__getitem__)
    if selection.select and not selection.selects_jobs:
        blocks = _within(expansion, blocks, _masks(expansion, selection.select).__getitem__)
    skip = [selector for selector in selection.skip if not names_jobs(selector)]
    if skip:
        unwanted = _masks(expansion, skip)
        blocks = _within(expansion, blocks, lambda head: ~unwanted[head])
    if not blocks:
        within = f" in subset `{selection.subset}`" if selection.subset else ""
        msg = f"the selection is empty: no cell is left{within}"
        raise SelectionError(msg, hint=_SEE)
    return blocks


def select_cells(expansion: Expansion, selection: Selection) -> Iterator[Cell]:
    """List the selected cells without planning their jobs, which is quicker."""
    for selector in (*selection.select, *selection.skip):
        if names_jobs(selector):
            msg = f"`{selector}` selects jobs, but cells are listed"
            raise SelectionError(msg, hint="`torchyard plan --jobs` lists jobs")
    for block in select_blocks(expansion, selection):
        for pair in block.pairs:
            yield Cell(*block.head, *pair)


def _masks(expansion: Expansion, selectors: Iterable[str]) -> dict[Head, int]:
    """What the selectors find in each block. One that finds nothing anywhere is a mistake."""
    label = expansion.config.project.label
    masks = dict.fromkeys((block.head for block in expansion.blocks), 0)
    for selector in selectors:
        found = False
        for block in expansion.blocks:
            cells = (Cell(*block.head, *pair) for pair in expansion.pairs)
            mask = block.mask & bits(cell_matches(cell, label, selector) for cell in cells)
            masks[block.head] |= mask
            found = found or mask > 0
        if not found:
            values = dict.fromkeys(value for column in expansion.values for value in column)
            hint = _SEE if "/" in selector else did_you_mean(selector, values)
            msg = f"`{selector}` matches no cell"
            raise SelectionError(msg, hint=hint)
    return masks


def _within(
    expansion: Expansion, blocks: Iterable[Block], mask_at: Callable[[Head], int]
) -> list[Block]:
    """What is left of blocks when each is limited to a mask."""
    masked = ((block.head, block.mask & mask_at(block.head)) for block in blocks)
    return [Block(head, mask, expansion.pairs_of(mask)) for head, mask in masked if mask]
