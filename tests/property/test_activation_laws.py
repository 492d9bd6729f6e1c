"""Scripts for shells: after whatever was sourced, one command restores the environment exactly."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from torchyard.toolchain.activation import UNDO, CellEnvironment, Shell, activation_script
from torchyard.toolchain.variables import LISTS

START = {
    Shell.BASH: ("bash", "--norc", "--noprofile", "-eu"),
    Shell.ZSH: ("zsh", "-f", "-eu"),
    Shell.FISH: ("fish", "--no-config"),
}
SYSTEM = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
OWN = ("_", "SHLVL", "PWD", "OLDPWD")
"""Variables that a shell sets itself."""

NAMES = ("CC", "BLAS", "name", "x", "PATH", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH")
HOSTILE = "it's \"$HOME\" `id` $(id) \\ \\' !x\n*~;&|<>#\t"
VALUES = st.one_of(
    st.sampled_from(["", " ", HOSTILE, "a:b", "$PATH", "-n", "\\", "'", "é"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Co", "Cn"])),
)
FOLDERS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0:", exclude_categories=["Co", "Cn"]))
    .filter(bool)
    .map(lambda name: f"/{name}"),
    min_size=1,
    max_size=2,
).map(":".join)


def variables(draw: st.DrawFn) -> dict[str, str]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return {name: draw(FOLDERS if name in LISTS else VALUES) for name in names}


environments = st.composite(variables)()


def command(shell: Shell) -> tuple[str, ...]:
    """The command of a shell that reads no settings; its path, as PATH may be anything."""
    program, *options = START[shell]
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"there is no {shell} here")
    return (found, *options)


def dumps(
    shell: Shell,
    start: Mapping[str, str],
    made: Sequence[Mapping[str, str]],
    sourced: Sequence[int],
) -> list[dict[str, str]]:
    """The environment at the start, after each script that was sourced, and after it was undone."""
    with TemporaryDirectory() as folder:
        for number, one in enumerate(made):
            cell = CellEnvironment(
                cell=f"cell\n{HOSTILE}", folder="", parts=(), variables=dict(one)
            )
            script = activation_script(shell, cell)
            Path(folder, f"{number}").write_bytes(script.encode())
        lines = [f". {folder}/{number}" for number in sourced]
        lines = [
            line
            for step, done in enumerate(["true", *lines, UNDO])
            for line in (done, f"/usr/bin/env -0 > {folder}/dump{step}")
        ]
        done = subprocess.run(
            [*command(shell), "-c", "\n".join(lines)],
            env={**SYSTEM, "HOME": folder, **start},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
        return [read(Path(folder, f"dump{step}")) for step in range(len(sourced) + 2)]


def read(dump: Path) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in dump.read_bytes().decode().split("\0") if line)
    return {name: value for name, value in pairs if name not in OWN}


def expected(start: Mapping[str, str], made: Mapping[str, str]) -> dict[str, str]:
    rest = {name: f":{start[name]}" for name in made if name in LISTS and start.get(name)}
    return {**start, **{name: value + rest.get(name, "") for name, value in made.items()}}


@pytest.mark.parametrize("shell", Shell)
@given(start=environments, one=environments, other=environments, again=st.booleans())
@settings(max_examples=examples(8), deadline=None)
@example(start={}, one={"CC": HOSTILE, "PATH": "/a b"}, other={"x": ""}, again=True)
@example(start={"CC": HOSTILE, "x": ""}, one={"CC": "gcc", "x": "1"}, other={}, again=False)
@example(start={"LD_LIBRARY_PATH": ""}, one={"LD_LIBRARY_PATH": "/l"}, other={}, again=True)
@example(start={"LD_LIBRARY_PATH": ":/x:"}, one={"LD_LIBRARY_PATH": "/l"}, other={}, again=True)
def test_sourced_twice_and_over_another_and_undone(
    shell: Shell,
    start: dict[str, str],
    one: dict[str, str],
    other: dict[str, str],
    again: bool,
) -> None:
    sourced = (0, 0, 1) if again else (0, 1, 0)
    first, *between, last = dumps(shell, start, [one, other], sourced)
    assert last == first
    for number, found in zip(sourced, between, strict=True):
        assert found == expected(first, (one, other)[number])


@pytest.mark.parametrize("shell", Shell)
def test_what_was_not_exported_is_not_exported_afterwards(shell: Shell, tmp_path: Path) -> None:
    cell = CellEnvironment(cell="x", folder="", parts=(), variables={"CC": "gcc", "PATH": "/new"})
    script = tmp_path / "activate"
    script.write_text(activation_script(shell, cell), encoding="utf-8")
    own = "set -g CC 'my own'" if shell is Shell.FISH else "CC='my own'"
    text = f'{own}\n. {script}\n/usr/bin/env | /usr/bin/grep ^CC=\n{UNDO}\n/usr/bin/env\necho "$CC"'
    argv = [*command(shell), "-c", text]
    done = subprocess.run(
        argv, env={**SYSTEM, "HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    first, *environment, last = done.stdout.splitlines()
    assert (first, last) == ("CC=gcc", "my own")
    assert not any(line.startswith("CC=") for line in environment)
