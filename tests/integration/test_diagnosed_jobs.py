"""The logs of jobs: of one that failed, and of many that did not."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.forked import TORCHYARD
from tests.support.helpers import CORE, WORKS, Command, make_project
from tests.support.recipe import call, shared_sample

from torchyard.config.failures import load_failures
from torchyard.model.failure import Found
from torchyard.run.diagnose import diagnose_pieces
from torchyard.store.store import Store
from torchyard.store.trees import read_result_log

pytestmark = pytest.mark.integration

OLD = "CMake 3.10 or higher is required.  You are running version 3.5.1"


def test_a_job_that_failed(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path, WORKS.replace("mkdir -p", f"echo '{OLD}'; exit 1; mkdir -p"))
    assert torchyard("build", CORE, "-f", file).code == 9
    done = torchyard("diagnose", CORE, "-f", file)
    assert "CMake is too old" in done.out
    assert "You are running version 3.5.1" in done.out
    assert torchyard("diagnose", "-f", file).out == done.out
    (tmp_path / "code/new.txt").write_text("another source, so another job", encoding="utf-8")
    assert torchyard("diagnose", CORE, "-f", file).out == done.out
    again = torchyard("diagnose", "-f", file, "--work", tmp_path / "none")
    assert "runs or has failed" in again.err


def test_the_cause_of_a_failure_comes_first(torchyard: Command, tmp_path: Path) -> None:
    line = "echo; echo 'int f() { return x; }' > a.cpp; g++ -c a.cpp; mkdir -p"
    file = make_project(tmp_path, WORKS.replace("mkdir -p", line))
    failed = torchyard("build", CORE, "-f", file)
    assert failed.code == 9
    told = failed.err[failed.err.index("\nerror: ") + 1 :].splitlines()
    assert told[0].startswith("error: The compiler rejects the code: ")
    assert " --> a.cpp:1:18" in told
    assert "1 | int f() { return x; }" in told
    assert f"error: {CORE}: `compile` failed with exit code 1" in told
    look = [*TORCHYARD, "shell", "-f", str(file), "--", "cat", "a.cpp"]
    shown = subprocess.run(look, check=True, capture_output=True, text=True)
    assert shown.stdout == "int f() { return x; }\n"


NINJA = r"""
printf 'rule t\n command = touch $out\nrule f\n command = false\n' > build.ninja
printf 'build %s/a.o: t {source}/a.txt\nbuild b.o: f %s/a.o\n' $PWD $PWD >> build.ninja
test -e {source}/good.txt || ninja
mkdir -p"""


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_a_job_that_failed_is_looked_at(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, and as the last one; a file of its build directory by its path there."""
    monkeypatch.chdir(tmp_path)
    text = WORKS.replace('run = "mkdir -p', "run = '''" + NINJA).replace(
        'core.bin"\noutputs', "core.bin'''\noutputs"
    )
    file, good = make_project(tmp_path, text), tmp_path / "code/good.txt"
    good.touch()
    assert torchyard("build", CORE).code == 0
    file.write_text(text.replace('"1.0"', '"1.1"'))
    assert torchyard("build", "core:*").code == 0
    file.write_text(text)
    good.unlink()
    assert torchyard("build", CORE).code == 9
    changed = f"{CORE} will be made again because good.txt changed\n"
    assert (
        torchyard("explain", "rebuild").out == torchyard("explain", "rebuild", CORE).out == changed
    )
    (made,) = tmp_path.glob(".torchyard/work/core-*/job/build/a.o")
    told = torchyard("explain", "rebuild", made.relative_to(tmp_path)).out
    assert told == "/mnt/torchyard/build/a.o was made because it had not been made before\n"
    touched = tmp_path / made.parents[1] / "inputs/source/a.txt"
    os.utime(touched, (2**31, 2**31))
    assert "a.o will be made again because /mnt/" in torchyard("explain", "rebuild", made).out
    for command in ("timings", "graph"):
        shown = torchyard(command)
        assert shown.code == 0
        assert shown.out == torchyard(command, CORE).out == torchyard(command, made.parent).out


@pytest.mark.slow
def test_no_job_that_passed_has_a_cause(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Jobs of tinytorch: CMake, gcc, pip and their noise."""
    failures = load_failures()
    with shared_sample(tmp_path_factory) as project:
        call(*TORCHYARD, "build", "check:*/cp311/wheel", "-f", project.file)
        store = Store.at(str(project.store))
        found = {
            result.id: [
                cause.name
                for cause in diagnose_pieces(read_result_log(store, result), failures).causes
                if cause.found is not Found.TAIL  # the last lines, where nothing is recognised
            ]
            for result in store.results()
        }
    assert len(found) >= 9
    assert {job: names for job, names in found.items() if names} == {}
