"""Steps that attack: nothing outside of their directories is read, written or stored."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.hostile_steps import Attempt, Machine, as_nobody, attempt_twice

from torchyard.model.config import SandboxKind

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

USERS = ["caller", "nobody"] if os.geteuid() == 0 else ["caller"]


@pytest.fixture
def machine() -> Iterator[Machine]:
    with TemporaryDirectory() as folder:  # pytest's own can't be seen by other users
        Path(folder).chmod(0o755)
        machine = Machine(Path(folder))
        yield machine
        machine.assert_unharmed()


def attempt(machine: Machine, user: str, *scripts: str, kind: SandboxKind = "bwrap") -> Attempt:
    """Run a job twice; return its error, or what it made."""
    run = as_nobody if user == "nobody" else attempt_twice
    done = run(machine, scripts, kind)
    assert "TRACEBACK" not in done.error, done.error
    return done


# ------------------------------------------------------------------ links where torchyard works

NAMES = [
    "log",
    "log.gz",
    "log.part",
    "state.json",
    "state.json.part",
    "torchyard-spec.json",
    "torchyard-spec.json.part",
    "kept",
    "inputs.part",
    "build",
    "out",
    "home",
    "tmp",
    "inputs",
    "inputs/source",
    "tools",
    "tools/ninja",
    "toolchain",
    "toolchain/bin",
    "env",
]

TARGETS = [
    "$VICTIM/file",
    *(
        pytest.param(target, marks=pytest.mark.slow)
        for target in ("$VICTIM", "$VICTIM/new", "../../../victim/file")
    ),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_link_in_the_place_of_a_file_or_directory(
    machine: Machine, name: str, target: str
) -> None:
    attempt(machine, "caller", f'cd {{work}}; rm -rf {name} || :; ln -sfn "{target}" {name} || :')


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kind", ["none", "view", "bwrap"])
def test_a_result_that_is_a_link_is_no_result(
    machine: Machine, user: str, kind: SandboxKind
) -> None:
    done = attempt(machine, user, "cd {work}; rmdir out; ln -s $VICTIM out", kind=kind)
    assert "/job/out` is or leads through a link" in done.error
    assert not done.files


@pytest.mark.parametrize("kind", ["none", "bwrap"])
def test_links_within_a_result_stay_links(machine: Machine, kind: SandboxKind) -> None:
    done = attempt(
        machine, "caller", "ln -s $VICTIM {out}/a; ln -s $VICTIM/file {out}/b", kind=kind
    )
    victim = machine.victim
    assert done == Attempt("", (f"a -> {victim}", f"b -> {victim}/file"))


def test_steps_do_not_reach_what_torchyard_keeps_of_them(machine: Machine) -> None:
    """The log, state and order of a job are no part of what its steps see."""
    script = "cd {work}/..; ls -A . {work}; cat {spec} > {out}/spec; ! echo x >> {spec}"
    done = attempt(machine, "caller", script, "! rm {spec}; ls {work} >{out}/l")
    assert done == Attempt("", ("l", "spec"))


# --------------------------------------------------------- variables of a step, and its sandbox


@pytest.mark.parametrize("kind", ["view", "bwrap"])
def test_variables_of_a_step_do_not_reach_the_program_that_makes_its_sandbox(
    machine: Machine, kind: SandboxKind
) -> None:
    """With LD_PRELOAD=job/build/own.so, bwrap loaded what an earlier step had left there."""
    trace = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": "job/out/trace", "OWN": "a b"}
    done = machine.run('echo "$OWN" "$LD_DEBUG_OUTPUT" > {out}/own', kind=kind, **trace)
    assert done == Attempt("", ("own",))


@pytest.mark.parametrize("env", [{"OWN": "x\0--bind\0/\0/mnt"}, {"OWN\0x\0--bind\0/\0/mnt": ""}])
def test_variables_of_a_step_are_no_options_of_the_sandbox(
    machine: Machine, env: dict[str, str]
) -> None:
    done = machine.run('echo x > "/mnt$VICTIM/file"', kind="bwrap", **env)
    assert "has a NUL character" in done.error


def test_a_step_inherits_no_file_of_the_program_that_makes_its_sandbox(machine: Machine) -> None:
    script = "! ls /proc/self/fd | grep -vw -e 0 -e 1 -e 2 -e 3; touch {out}/made"
    assert machine.run(script) == Attempt("", ("made",))
