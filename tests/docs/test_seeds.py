"""Every answer of docs/evidence/seeds.md names a command and a test that exist."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import click
from tests.helpers import ROOT
from tests.sabotage import SABOTAGES

from torchyard.cli.main import torchyard

PAGE = ROOT / "docs/evidence/seeds.md"


class Fact(NamedTuple):
    """A row of the page."""

    fact: str
    answer: str
    held: str

    @property
    def state(self) -> str:
        return self.answer.partition(":")[0] if self.answer[0] != "`" else "answered"


def rows() -> list[Fact]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:2] == "| ")
    return [Fact(*row) for row in cells if row[0] != "fact"]


@cache
def options_of(words: tuple[str, ...]) -> set[str]:
    """The options of a command, which must exist; what follows it is arguments."""
    command: click.Command = torchyard
    for word in words:
        if not isinstance(command, click.Group) or word[:1] == "-":
            break
        found = command.get_command(click.Context(command), word)
        assert found is not None, f"torchyard {' '.join(words)}"
        command = found
    return {option for one in command.get_params(click.Context(command)) for option in one.opts}


@cache
def names_of_tests(file: str) -> set[str]:
    text = (ROOT / file).read_text(encoding="utf-8")
    return set(re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE))


ROWS = rows()


def test_the_numbers_are_right() -> None:
    states = [row.state for row in ROWS]
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    counts = {state: states.count(state) for state in ("answered", "no")}
    assert sum(counts.values()) == len(ROWS) == 172
    assert f"Of {len(ROWS)} facts, {counts['answered']} are answered, and {counts['no']}" in text


def test_every_command_and_test_is_there() -> None:
    wrong = {row.fact: fault for row in ROWS for fault in faults_of(row)}
    assert wrong == {}


def faults_of(row: Fact) -> Iterator[str]:
    """Yield what is wrong with a row."""
    if row.state == "no":
        if len(row.held) < len("as macOS packages"):
            yield "no reason"
        return
    (typed,) = re.findall(r"`torchyard ([^`]+)`", row.answer)
    words = shlex.split(typed)
    known = options_of(tuple(words[:2]))
    yield from (word for word in words if word[:1] == "-" and word not in known)
    named = re.fullmatch(r"`([\w/.]+)::(\w+)(?:\[(.+)\])?`", row.held)
    if named is None or named[2] not in names_of_tests(named[1]):
        yield f"there is no test {row.held}"
    elif named[3] is not None and named[3] not in SABOTAGES:
        yield f"there is no sabotage {named[3]}"
