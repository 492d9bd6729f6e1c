"""Identifiers survive being written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.errors import SelectionError
from torchyard.model.identifier import Cell, Identifier, parse, scope_path
from torchyard.model.recipe import Stage

words = st.from_regex(r"[a-z0-9_.]{1,8}", fullmatch=True)
hyphened = st.lists(words, min_size=1, max_size=2).map("-".join)
labels = st.tuples(hyphened, st.from_regex(r"[0-9][a-z0-9.]{0,6}", fullmatch=True)).map("-".join)
cells = st.builds(Cell, hyphened, words, words, words, hyphened)
DEPTHS = {Stage.SOURCE: 0, Stage.CORE: 3, Stage.BINDINGS: 4}


@given(labels, cells)
def test_a_cell_is_read_as_it_was_written(label: str, cell: Cell) -> None:
    parsed = parse(f"{label}/{cell.path}")
    assert parsed == Identifier(None, label, cell.path)
    assert Cell.from_path(parsed.path) == cell


@given(labels, cells, st.sampled_from([s for s in Stage if s is not Stage.PUBLISH]))
def test_a_job_is_read_as_it_was_written(label: str, cell: Cell, stage: Stage) -> None:
    identifier = Identifier(stage, label, scope_path(cell[: DEPTHS.get(stage, 5)]))
    assert parse(str(identifier)) == identifier


@given(st.text(st.characters(blacklist_characters="/:"), max_size=30))
def test_anything_else_is_refused_kindly(text: str) -> None:
    with pytest.raises(SelectionError) as caught:
        assert str(parse(text)) != text
    assert caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    "text", ["cores:torch-2.14.0/linux-x86_64/cu130-mkl", "core:torch-2.14.0/linux-x86_64"]
)
def test_a_wrong_stage_or_shape_is_no_identifier(text: str) -> None:
    with pytest.raises(SelectionError, match="is not the identifier"):
        parse(text)
