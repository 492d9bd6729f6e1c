"""Scripts for shells: what can't be written into one, and what environments are made of."""

import os
from pathlib import Path

import pytest
from rich.console import Console

from torchyard.errors import ConfigError
from torchyard.features.env.report import EnvReport, toolchain_activate_text
from torchyard.toolchain.activation import CellEnvironment, Shell, activation_script


def environment(**variables: str) -> CellEnvironment:
    return CellEnvironment(cell="a\nid", folder="/e", parts=(), variables=variables)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A;id", "A\n", "é", "_torchyard_CC"])
@pytest.mark.parametrize("shell", Shell)
def test_a_name_that_is_no_variable_is_refused(shell: Shell, name: str) -> None:
    with pytest.raises(ConfigError, match="can't set a variable"):
        activation_script(shell, environment(**{name: "x"}))


def test_a_value_that_no_variable_can_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="NUL"):
        activation_script(Shell.BASH, environment(A="x\0y"))


@pytest.mark.parametrize("shell", Shell)
def test_a_cell_is_in_a_comment_of_one_line(shell: Shell) -> None:
    assert activation_script(shell, environment()).startswith("# The environment of a?id.\n")


def shown(made: CellEnvironment, *, diff: bool = False) -> list[str]:
    lines = toolchain_activate_text(EnvReport.of(made), diff=diff)
    assert not isinstance(lines, bytes)
    console = Console(width=100)
    with console.capture() as captured:
        console.print(*lines, sep="\n")
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_what_would_change_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    made = environment(PATH="/e/bin", CC="gcc", BLAS="MKL", CXX="g++", LIBRARY_PATH="/e/lib")
    now = {"PATH": "/bin", "CC": "clang", "CXX": "g++", "HOME": "/"}
    monkeypatch.setattr(os, "environ", now)
    assert shown(made, diff=True)[1:] == [
        "BLAS not set MKL",
        "CC clang gcc",
        "LIBRARY_PATH not set /e/lib",
        "PATH … /e/bin:…",
    ]
    active = {**now, **made.variables, "PATH": "/e/bin:/bin"}
    monkeypatch.setattr(os, "environ", active)
    assert shown(made, diff=True)[0].startswith("nothing would change")


def test_how_it_is_entered_is_a_line_for_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/zsh")
    (tmp_path / "it's").mkdir()
    monkeypatch.chdir(tmp_path / "it's")
    made = CellEnvironment(cell="a", folder="/w/it's/e", parts=(), variables={})
    assert "enter it: source '/w/it'\"'\"'s/e/activate.zsh'" in shown(made)
    inside = CellEnvironment(cell="a", folder=str(Path.cwd() / "e"), parts=(), variables={})
    assert "enter it: source e/activate.zsh" in shown(inside)


def test_lists_are_apart_for_programs() -> None:
    document = EnvReport.of(environment(PATH="/a:/b", CC="gcc"))
    assert (document.set, document.prepend) == ({"CC": "gcc"}, {"PATH": ["/a", "/b"]})
    assert document.scripts["fish"] == "/e/activate.fish"
