"""Pairwise coverage: every pair of values, few cells, and the same ones each time."""

import random
from itertools import combinations, product
from pathlib import Path

import pytest
from tests.support.helpers import EXAMPLE, SMALL, Command, config_of

from torchyard.model.identifier import Cell
from torchyard.plan.cover import cover_pairs
from torchyard.plan.expand import expand

Pair = tuple[int, str, int, str]


def pairs(cells: list[Cell]) -> set[Pair]:
    return {(i, c[i], j, c[j]) for c in cells for i, j in combinations(range(5), 2)}


def drawn(seed: int) -> list[Cell]:
    """Return the cells of a random matrix, of which some leave out a tenth."""
    random_ = random.Random(seed)  # noqa: S311 - no secret
    columns = [[f"{name}{n}" for n in range(random_.randint(1, 7))] for name in "abcde"]
    kept = random_.choice([1.0, 0.9])
    return [Cell(*cell) for cell in product(*columns) if random_.random() < kept]


def test_the_example_is_covered_by_few_cells() -> None:
    cells = expand(config_of(EXAMPLE.read_text(encoding="utf-8"))).cells
    chosen = cover_pairs(cells)
    assert pairs(chosen) == pairs(cells)
    assert len(chosen) <= 106  # 105 are the fewest, as an integer program proves
    assert chosen == [cell for cell in cells if cell in set(chosen)]


@pytest.mark.parametrize("seed", range(20))
def test_every_pair_is_there_and_no_cell_is_in_vain(seed: int) -> None:
    cells = drawn(seed)
    chosen = cover_pairs(cells)
    assert pairs(chosen) == pairs(cells)
    assert chosen == cover_pairs(cells)
    for cell in chosen:
        assert pairs([other for other in chosen if other != cell]) != pairs(cells)


def test_nothing_is_covered_by_nothing() -> None:
    assert cover_pairs([]) == []


def test_a_subset_can_choose_pairs(torchyard: Command, tmp_path: Path) -> None:
    text = SMALL.replace("[subset.pr]", '[subset.pairs]\nchoose = "pairs"\n[subset.pr]')
    file = tmp_path / "torchyard.toml"
    file.write_text(text, encoding="utf-8")
    every = torchyard("plan", "-f", file, "--list", "cells").out.splitlines()
    some = torchyard("plan", "-f", file, "--list", "cells", "--subset", "pairs").out.splitlines()
    assert set(some) < set(every)
    cells = [Cell.from_path(line.partition("/")[2]) for line in every]
    assert pairs([Cell.from_path(line.partition("/")[2]) for line in some]) == pairs(cells)
    assert torchyard("plan", "-f", file, "--subset", "pairs").code == 0


@pytest.mark.slow
def test_the_choice_is_hardly_larger_than_that_of_another_tool() -> None:
    allpairspy = pytest.importorskip("allpairspy")
    compared = 0
    for seed in range(200):
        cells = drawn(seed)
        if not cells:
            continue
        known = [{tuple(cell[:length]) for cell in cells} for length in range(6)]
        columns = [sorted({cell[field] for cell in cells}) for field in range(5)]
        rows = allpairspy.AllPairs(
            columns, filter_func=lambda row, known=known: tuple(row) in known[len(row)]
        )
        theirs = [Cell(*row) for row in rows]
        if pairs(theirs) == pairs(cells):  # with cells left out, it misses pairs
            compared += 1
            assert len(cover_pairs(cells)) <= 1.3 * len(theirs), seed
    assert compared > 100
