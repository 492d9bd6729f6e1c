"""Everything that the documentation tells people to type is run, in order, page by page."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.markdown import (
    ANYTHING,
    Typed,
    commands,
    commands_in,
    difference,
    missing_line,
    pages,
)
from tests.docs.pages import (
    PAGES,
    printed_once_ready,
    reason_not_run,
    status_of,
    unused_globs,
)
from tests.docs.prepare import Preparer
from tests.docs.scene import shell_in

from torchyard.host.machine import python_name


def _parameter(page: str) -> object:
    marks = [pytest.mark.integration, *([pytest.mark.slow] if PAGES[page].slow else [])]
    return pytest.param(page, id=page.removeprefix("docs/").removesuffix(".md"), marks=marks)


@pytest.mark.parametrize("page", list(map(_parameter, PAGES)))
def test_commands_of_a_page(
    page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    how = PAGES[page]
    for program in how.programs:
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    if how.pythons and python_name() not in how.pythons:
        pytest.skip(f"its wheels are for {' and '.join(how.pythons)}")
    with ExitStack() as stack:
        scene = how.prepare(Preparer(tmp_path, stack, tmp_path_factory))
        shell = stack.enter_context(shell_in(scene))
        for typed in commands(page):
            if reason_not_run(typed) is None:
                shell.type(typed, status=status_of(typed), until=printed_once_ready(typed))


def test_every_command_is_run_or_listed_with_a_reason() -> None:
    typed = [one for page in pages() if page not in PAGES for one in commands(page)]
    assert [f"{one.page}:{one.line}: {one.text}" for one in typed if not reason_not_run(one)] == []


def test_every_row_of_the_tables_is_needed() -> None:
    assert unused_globs() == []
    assert [page for page in PAGES if all(map(reason_not_run, commands(page)))] == []


def test_commands_are_read_with_continuations_comments_and_output() -> None:
    text = (
        "x\n\n```console\n$ one \\\n    two  # why\nout\n$ three\n```\n\n```toml\n$ no = 1\n```\n"
    )
    first, second = commands_in("p", text)
    assert first == Typed("p", 4, "one \\\n    two  # why", ("out",))
    assert first.words == "one two"
    assert second == Typed("p", 7, "three", ())


def test_a_block_with_a_file_name_is_written_to_that_file() -> None:
    (typed,) = commands_in("p", "<!-- file: a/b.py -->\n```python\nx = 1\n```\n")
    assert typed.text == "mkdir -p $(dirname a/b.py) && cat >a/b.py <<'END'\nx = 1\nEND"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a  b"], ["a b"], True),
        (["a"], ["b"], False),
        (["a"], ["a", "b"], False),
        ([ANYTHING, "b"], ["a", "a", "b"], True),
        ([ANYTHING, "b"], ["b"], True),
        (["a", ANYTHING], ["b", "a"], False),
        (["a … c"], ["a b b c"], True),
        (["a … c"], ["a b"], False),
        (["a … c"], ["a c"], True),
        (["a … c"], ["ac"], False),
        (["a"], ["a", "", ""], True),
    ],
)
def test_output_is_compared(shown: list[str], printed: list[str], same: bool) -> None:
    assert (difference(shown, printed) is None) == same


def test_lines_are_found_in_order_among_others() -> None:
    printed = ["a  1", "b 2", "c 3"]
    assert missing_line(["a …", "c 3"], printed) is None
    assert missing_line(["c 3", "a …"], printed) == "a …"
    assert missing_line(["b"], printed) == "b"
