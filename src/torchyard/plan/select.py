"""Choosing a part of the matrix: subsets by name, cells and jobs by glob."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from torchyard.errors import SelectionError
from torchyard.model.identifier import Cell
from torchyard.model.matrix import Subset, any_match, matches
from torchyard.model.suggest import did_you_mean
from torchyard.model.yard import Yard
from torchyard.plan.expand import Block, Expansion, bits


class Selection(NamedTuple):
    """What the command line asks for.

    A selector is a glob over identifiers. With a `:` it is about jobs, otherwise about cells; one
    without a `/` is compared with each value of a cell, so that `cu130` and `cp31*` do as well.
    """

    subset: str | None = None
    select: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


EVERYTHING = Selection()


def cell_matches(cell: Cell, label: str, selector: str) -> bool:
    if "/" in selector:
        return matches(f"{label}/{cell.path}", selector)
    return any(matches(value, selector) for value in cell)


def find_subset(yard: Yard, name: str | None) -> Subset | None:
    if name is None:
        return None
    if name not in yard.subsets:
        msg = f"there is no subset `{name}`"
        hint = did_you_mean(name, yard.subsets) if yard.subsets else "the file has no [subset.…]"
        raise SelectionError(msg, hint=hint)
    return yard.subsets[name]


def in_subset(cell: Cell, yard: Yard, subset: Subset) -> bool:
    named = any_match(f"{yard.project.label}/{cell.path}", subset.cells)
    return subset.pattern.matches(cell) and (named or not subset.cells)


def select_blocks(expansion: Expansion, selection: Selection) -> Sequence[Block]:
    """Narrow the cells down to a selection, and complain of a selector that finds nothing."""
    yard = expansion.yard
    blocks: Sequence[Block] = expansion.blocks
    subset = find_subset(yard, selection.subset)
    if subset is not None:
        matcher = expansion.matcher(subset.pattern)
        masked = ((block, block.mask & matcher.at(block.head)) for block in blocks)
        blocks = _remaining(expansion, masked)
        if subset.cells:
            blocks = _by_cell(expansion, blocks, [_Test(yard, g) for g in subset.cells], keep=True)
    wanted = [selector for selector in selection.select if ":" not in selector]
    unwanted = [selector for selector in selection.skip if ":" not in selector]
    if wanted:
        blocks = _by_cell(expansion, blocks, [_Test(yard, s) for s in wanted], keep=True)
    if unwanted:
        blocks = _by_cell(expansion, blocks, [_Test(yard, s) for s in unwanted], keep=False)
    if not blocks:
        msg = "the selection is empty: no cell is left"
        raise SelectionError(msg, hint="`torchyard plan --identifiers` lists what there is")
    return blocks


def select_cells(expansion: Expansion, selection: Selection) -> Iterator[Cell]:
    """List the selected cells without planning their jobs, which is quicker."""
    for selector in (*selection.select, *selection.skip):
        if ":" in selector:
            msg = f"`{selector}` selects jobs, but cells are listed"
            raise SelectionError(msg, hint="`torchyard plan --json` lists jobs")
    for block in select_blocks(expansion, selection):
        for pair in block.pairs:
            yield Cell(*block.head, *pair)


class _Test:
    """A selector that remembers whether it ever found anything."""

    def __init__(self, yard: Yard, selector: str) -> None:
        self.label = yard.project.label
        self.selector = selector
        self.used = False

    def mask(self, cells: Iterable[Cell], *, among: int) -> int:
        """The cells that match, as bits; only those among the given bits count as found."""
        found = among & bits(cell_matches(cell, self.label, self.selector) for cell in cells)
        self.used = self.used or found > 0
        return found


def _by_cell(
    expansion: Expansion, blocks: Iterable[Block], tests: Sequence[_Test], *, keep: bool
) -> list[Block]:
    def mask(block: Block) -> int:
        cells = [Cell(*block.head, *pair) for pair in expansion.pairs]
        found = 0
        for test in tests:
            found |= test.mask(cells, among=block.mask)
        return block.mask & (found if keep else ~found)

    remaining = _remaining(expansion, ((block, mask(block)) for block in blocks))
    for test in tests:
        if not test.used:
            msg = f"`{test.selector}` matches no cell"
            values = dict.fromkeys(value for values in expansion.values for value in values)
            hint = did_you_mean(test.selector, values)
            if "/" in test.selector:
                hint = "`torchyard plan --identifiers` lists what there is"
            raise SelectionError(msg, hint=hint)
    return remaining


def _remaining(expansion: Expansion, masked: Iterable[tuple[Block, int]]) -> list[Block]:
    return [Block(block.head, mask, expansion.pairs_of(mask)) for block, mask in masked if mask]
