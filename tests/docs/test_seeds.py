"""Every command of docs/evidence/seeds.md is run, and its answer is compared with the page."""

import re
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.docs.markdown import Typed, missing_line
from tests.docs.scene import shell_in
from tests.docs.seed_scenes import SCENES, SeedScenes
from tests.support.helpers import ROOT

PAGE = "docs/evidence/seeds.md"
_FACTS = 172


class Fact(NamedTuple):
    """A row of the page; without a scene, the fact does not hold, and `answer` says why."""

    line: int
    fact: str
    scene: str
    command: str
    answer: str

    def fault(self, printed: str) -> str | None:
        """Return what output lacks of the answer, or None."""
        line = missing_line(re.findall(r"`([^`]+)`", self.answer), printed.splitlines())
        return line and f"{PAGE}:{self.line}: {self.command}\nlacks {line}\nin\n{printed}"

    @property
    def typed(self) -> Typed:
        """The command, in a shell of its own, so that it changes no other command's variables."""
        return Typed(PAGE, self.line, f"(\n{self.command.strip('`')}\n)", ())

    @property
    def status(self) -> int:
        found = re.search(r"exit status (\d+)", self.answer)
        return int(found[1]) if found else 0


def rows() -> list[Fact]:
    lines = (ROOT / PAGE).read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == len(Fact._fields) - 1 and cells[0].strip("-") not in ("", "fact"):
            found.append(Fact(number, *cells))
    return found


ROWS = rows()


def test_the_numbers_are_right() -> None:
    text = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    hold = sum(row.scene != "" for row in ROWS)
    assert len(ROWS) == _FACTS
    assert f"each of their {len(ROWS)} facts" in text
    assert f"{hold} hold;" in text


def test_every_fact_that_holds_has_an_answer_and_every_other_says_what_it_needs() -> None:
    for row in ROWS:
        if row.scene:
            assert row.scene in SCENES, row
            assert re.fullmatch(r"`[^`]*\btorchyard [^`]+`", row.command), row
            assert re.search("`[^`]+`", row.answer), row
        else:
            assert row.command == "", row
            assert re.search(r"\bneeds\b|^as .*, above$", row.answer), row


def _parameter(scene: str) -> object:
    marks = [pytest.mark.integration, *([pytest.mark.slow] if SCENES[scene].slow else [])]
    return pytest.param(scene, marks=marks)


@pytest.mark.parametrize("scene", list(map(_parameter, SCENES)))
def test_facts_hold(scene: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    how = SCENES[scene]
    for program in how.programs:
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    wrong: list[str] = []
    printed: dict[str, str] = {}
    with ExitStack() as stack:
        shell = stack.enter_context(
            shell_in(how.prepare(SeedScenes(tmp_path, stack, tmp_path_factory)))
        )
        for row in ROWS:
            if row.scene == scene:
                try:
                    if row.command not in printed:
                        printed[row.command] = shell.type(row.typed, status=row.status)
                    wrong += filter(None, [row.fault(printed[row.command])])
                except AssertionError as error:
                    wrong.append(str(error))
    assert not wrong, "\n\n".join(wrong)
