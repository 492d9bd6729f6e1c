"""Choose few cells that cover every pair of values: pairwise coverage."""

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations

from torchyard.model.identifier import Cell

_Pair = tuple[int, str, int, str]


def cover_pairs(cells: Sequence[Cell]) -> list[Cell]:
    """Return a few of the cells, in order, that together have every pair of values of any cell.

    The cell with the most new pairs is taken first, the earliest if several have as many; at the
    end, redundant cells are dropped. The same cells give the same choice.
    """
    pairs = [_pairs(cell) for cell in cells]
    missing = {pair for covered in pairs for pair in covered}
    heap = [(-len(covered), number) for number, covered in enumerate(pairs)]
    heapify(heap)
    chosen: list[int] = []
    while missing:
        gain, number = heappop(heap)
        found = -sum(pair in missing for pair in pairs[number])
        if found > gain:  # its gain has shrunk, so another cell may be better
            if found:
                heappush(heap, (found, number))
            continue
        chosen.append(number)
        missing.difference_update(pairs[number])
    return [cells[number] for number in sorted(_needed(chosen, pairs))]


def _pairs(cell: Cell) -> list[_Pair]:
    return [(a, x, b, y) for (a, x), (b, y) in combinations(enumerate(cell), 2)]


def _needed(chosen: Sequence[int], pairs: Sequence[Sequence[_Pair]]) -> list[int]:
    """Return the chosen cells without redundant ones, trying to drop the last cell first."""
    counts = Counter(pair for number in chosen for pair in pairs[number])
    kept = []
    for number in reversed(chosen):
        if all(counts[pair] > 1 for pair in pairs[number]):
            counts.subtract(pairs[number])
        else:
            kept.append(number)
    return kept
