"""Smoke: headers of tests, known failures, conditions, and how programs end."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from datetime import date
from pathlib import Path

import msgspec
import psutil
import pytest
from tests.support.helpers import ROOT, Command
from tests.support.smoke import make_wheel

from torchyard.errors import ConfigError, UsageError
from torchyard.features.smoke.report import SmokeReport, smoke_text
from torchyard.host.timed_run import TimedRun, run_with_timeout
from torchyard.smoke import hostile as hostile_conditions
from torchyard.smoke.attempt import _verdict, attempt
from torchyard.smoke.hostile import Condition, conditions_of, hostile, load_hostility
from torchyard.smoke.install import UnfitError, refuse_other_subdirs
from torchyard.smoke.installation import (
    Installation,
    Installer,
    libraries_in,
    modules_in,
)
from torchyard.smoke.known_failures import Known, judge, load_known, tell_unused
from torchyard.smoke.outcome import Outcome, Run, SmokeAttempt, Smoked
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.request import smoke_request
from torchyard.smoke.smoke import smoke_all, smoke_here
from torchyard.smoke.suite import IMPORT, Level, Need, built_in, read_suite
from torchyard.smoke.surroundings import NO_SANDBOX, Environment, plain

GOOD = "# level: ops\n# about: it is good\n"
TODAY = date(2027, 1, 1)


def test_who_tries_packages_outside_of_jobs_is_told_that_there_is_no_sandbox(
    torchyard: Command, tmp_path: Path
) -> None:
    """A job's sandbox is around all of its steps; `torchyard smoke` itself has none for tests."""
    said: list[str] = []
    smoke_all([], smoke_request(TODAY), folder=tmp_path, tell=said.append)
    assert not said
    smoke_here([], smoke_request(TODAY), tell=said.append)
    assert said == [NO_SANDBOX]
    done = torchyard("smoke", make_wheel(tmp_path, tag="py3-none-win_amd64"))
    assert done.err.startswith(NO_SANDBOX)
    assert "can't be tried here" in done.err


# ------------------------------------------------------------------------- test files


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_header_of_a_test_says_what_it_is(tmp_path: Path) -> None:
    write(tmp_path, "b.py", f"{GOOD}# needs: numpy compiler\n# timeout: 7\nimport x\n# no: key\n")
    write(tmp_path, "a.cpp", "// level: full\n// about: C++\n// package: Torch\nint main() {}\n")
    write(tmp_path, "c/CMakeLists.txt", "# level: import\n# about: project\n")
    write(tmp_path, "notes.txt", "no test")
    write(tmp_path, "d/main.cpp", "no test")
    third, second, first = (read_suite(tmp_path, "own")[number] for number in (2, 1, 0))
    assert (first.name, first.language, first.level) == ("own/c", "cmake", Level.IMPORT)
    assert (second.name, second.needs, second.timeout) == (
        "own/b.py",
        (Need.NUMPY, Need.COMPILER),
        7,
    )
    assert (third.name, third.package, third.about) == ("own/a.cpp", "Torch", "C++")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import x\n", "its header lacks `level`"),
        ("# level: ops\n", "its header lacks `about`"),
        ("# level: op\n# about: x\n", "its level is the unknown `op`"),
        (f"{GOOD}# need: gpu\n", "unknown key `need`"),
        (f"{GOOD}# needs: gpus\n", "unknown `gpus`"),
        (f"{GOOD}# timeout: soon\n", "its timeout `soon` is no number of seconds"),
        (f"{GOOD}# timeout: 0\n", "its timeout `0` is no number of seconds"),
        (f"{GOOD}# timeout: -1\n", "its timeout `-1` is no number of seconds"),
        (f"{GOOD}# level: ops\n", "line 3 of its header is there twice"),
        (f"{GOOD}# Copyright\n", "line 3 of its header is no `key: value`"),
        (f"{GOOD}# package: Torch\n", "`package` is for C++ files"),
    ],
)
def test_a_header_that_is_wrong_is_refused(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, "test.py", text)
    with pytest.raises(UsageError, match="can't be used") as error:
        read_suite(tmp_path)
    assert said in str(error.value)


def test_a_word_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    for text, hint in (
        (f"{GOOD}# needs: gpus\n", "did you mean `gpu`?"),
        ("# level: op\n# about: x\n", "did you mean `ops`?"),
    ):
        write(tmp_path, "test.py", text)
        with pytest.raises(UsageError) as error:
            read_suite(tmp_path)
        assert error.value.diagnostics[0].hint == hint


@pytest.mark.parametrize("suite", ["any", "torch"])
def test_the_suites_that_are_shipped_can_be_read(suite: str) -> None:
    tests = built_in(suite)
    assert len({test.name for test in tests}) == len(tests) > 2
    assert tests[0].level is Level.IMPORT


def test_extensions_have_a_test_of_their_operators() -> None:
    (test,) = built_in("with_torch")
    assert (test.name, test.level) == ("with_torch/operators.py", Level.OPS)


def test_the_import_test_is_where_it_is_looked_for() -> None:
    assert built_in("any")[0].name == IMPORT


def test_the_suite_of_the_sample_can_be_read() -> None:
    names = {test.name for test in read_suite(ROOT / "tests/projects/tinytorch/smoke")}
    assert {"smoke/core.py", "smoke/consumer.cpp"} <= names


def test_levels_include_those_before_them() -> None:
    assert Level.FULL.includes(Level.IMPORT)
    assert Level.OPS.includes(Level.OPS)
    assert not Level.IMPORT.includes(Level.OPS)


# --------------------------------------------------------------------- known failures

FAILED = SmokeAttempt(test="own/a.py", outcome=Outcome.FAILED, why="it broke")
ROW = Known(test="own/*", reason="upstream#1", until=date(2027, 2, 1), package="torch-2.13.*")


def judged(attempt: SmokeAttempt, row: Known = ROW, package: str = "torch-2.13.0") -> SmokeAttempt:
    return judge(attempt, package, "clean", (row,), TODAY)


def test_a_known_failure_is_let_through_with_its_reason() -> None:
    found = judged(FAILED)
    assert found.outcome is Outcome.KNOWN
    assert found.why == "upstream#1 (until 2027-02-01): it broke"


def test_a_known_failure_that_has_expired_fails() -> None:
    late = Known(test="own/*", reason="upstream#1", until=date(2026, 12, 31))
    found = judged(FAILED, late)
    assert found.outcome is Outcome.FAILED
    assert "it was a known failure until 2026-12-31: upstream#1" in found.why


def test_of_several_rows_the_one_that_holds_longest_counts() -> None:
    late = Known(test="own/*", reason="old", until=date(2026, 12, 31))
    found = judge(FAILED, "torch-2.13.0", "clean", (late, ROW), TODAY)
    assert found.outcome is Outcome.KNOWN
    assert found.why.startswith("upstream#1 ")


def told(*outcomes: Outcome) -> list[str]:
    """What is said of tests that are all known to fail, in one environment after the other."""
    runs = [
        Run(
            installer="uv",
            environment=environment,
            attempts=(SmokeAttempt(test="own/a.py", outcome=outcome),),
        )
        for environment, outcome in zip(("clean", "hostile"), outcomes, strict=True)
    ]
    return [run.attempts[0].why for run in tell_unused(runs, "torch-2.13.0", (ROW,))]


def test_a_known_failure_that_passes_now_is_told_once() -> None:
    why, more = told(Outcome.PASSED, Outcome.PASSED)
    assert why.startswith("passes now: remove it")
    assert not more
    assert told(Outcome.NOT_RUN, Outcome.PASSED)[1] == why


def test_a_known_failure_that_passes_elsewhere_is_still_known() -> None:
    assert told(Outcome.PASSED, Outcome.KNOWN) == ["", ""]
    assert told(Outcome.NOT_RUN, Outcome.NOT_RUN) == ["", ""]


def test_other_packages_tests_and_environments_are_no_known_failures() -> None:
    assert judged(FAILED, package="torch-2.14.0") == FAILED
    assert judged(SmokeAttempt(test="any/a.py", outcome=Outcome.FAILED)).outcome is Outcome.FAILED
    hostile_only = Known(test="*", reason="x", until=date(2028, 1, 1), environment="hostile")
    assert judged(FAILED, hostile_only) == FAILED
    idle = SmokeAttempt(test="own/a.py", outcome=Outcome.NOT_RUN, why="no GPU")
    assert judged(idle) == idle


def test_a_folder_of_tests_may_have_its_own_table(tmp_path: Path) -> None:
    before = load_known(tmp_path)
    text = '[[known]]\ntest = "own/*"\nreason = "r"\nuntil = 2027-02-01\n'
    write(tmp_path, "known.toml", text)
    assert [row.reason for row in load_known(tmp_path)[len(before) :]] == ["r"]
    write(tmp_path, "known.toml", '[[known]]\ntest = "own/*"\nreason = "r"\n')
    with pytest.raises(ConfigError, match="lacks the required key `until`"):
        load_known(tmp_path)
    write(tmp_path, "known.toml", text.replace('"r"', '" "'))
    with pytest.raises(ConfigError, match="a known failure needs a reason"):
        load_known(tmp_path)


# ------------------------------------------------------------------------- the verdict


def verdict(*packages: dict[str, Outcome], kind: str = "wheel") -> str:
    """The last line of the report on packages with these tests."""
    smoked = [
        Smoked(
            file=f"{number}.whl",
            kind=kind,
            name="x",
            version="1",
            runs=(
                Run(
                    installer="uv",
                    environment="clean",
                    attempts=tuple(SmokeAttempt(test=name, outcome=o) for name, o in tests.items()),
                ),
            ),
        )
        for number, tests in enumerate(packages)
    ]
    *_, last = smoke_text(SmokeReport.of(smoked, "ops"))
    return str(last)


def test_the_verdict_says_no_more_than_was_tried() -> None:
    good = {"install": Outcome.PASSED, "any/import.py": Outcome.PASSED}
    bad = {"install": Outcome.FAILED}
    idle = {"install": Outcome.NOT_RUN}
    alone = {"install": Outcome.PASSED, "any/import.py": Outcome.NOT_RUN}
    assert verdict(good) == "it works: 2 passed"
    assert verdict(bad) == "it does not work: 1 failed"
    assert verdict(idle) == "nothing could be tried: 1 not run"
    assert verdict(alone).startswith("it can be installed, and nothing else was tried: ")
    assert verdict(alone, kind="zip").startswith("it can be unpacked, and nothing else was tried: ")
    assert verdict(good, bad).startswith("1 of 2 packages work: ")
    assert verdict(good, idle).startswith("1 of 2 packages work, 1 could not be tried: ")
    assert verdict(idle, idle).startswith("nothing could be tried: ")


# --------------------------------------------------------------------- what is installed


def test_modules_are_what_can_be_imported() -> None:
    files = [
        "torch/__init__.py",
        "torch/nn/__init__.py",
        "torch.libs/libgomp.so.1",
        "torch-2.13.0.dist-info/RECORD",
        "single.py",
        "_native.cpython-311-x86_64-linux-gnu.so",
        "_stable.abi3.so",
        "data/readme.txt",
        "not-a-name.py",
        "notes.txt",
    ]
    assert modules_in(files) == ("_native", "_stable", "single", "torch")
    assert libraries_in(files) == ("libgomp.so.1",)


def test_a_package_in_a_namespace_is_imported_by_its_full_name() -> None:
    files = ["space/ops/__init__.py", "space/ops/inner/__init__.py", "../../bin/__init__.py"]
    assert modules_in(files) == ("space.ops",)
    assert modules_in([*files, "real/__init__.py"]) == ("real",)


def test_a_conda_package_for_another_system_does_not_fit() -> None:
    def package(subdir: str) -> PackageUnderTest:
        return PackageUnderTest(path="x.conda", format="conda", name="x", subdir=subdir)

    refuse_other_subdirs(package("noarch"))
    with pytest.raises(UnfitError, match="it is for plan9-386, and this is "):
        refuse_other_subdirs(package("plan9-386"))


# ------------------------------------------------------------------------- conditions


def surroundings_of(compute: str, tmp_path: Path) -> tuple[PackageUnderTest, Installation]:
    specimen = PackageUnderTest(path="x.zip", format="zip", name="x", compute=compute)
    (tmp_path / "env").mkdir()
    return specimen, Installation(installer=Installer.UNZIP, prefix=str(tmp_path / "env"))


def test_what_can_not_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    specimen, installation = surroundings_of("rocm7.2", tmp_path)
    around = hostile(plain(installation, tmp_path / "a"), specimen, tmp_path / "b", list(Condition))
    assert "bubblewrap is not installed" in around.missing[Condition.NETWORK]
    assert "bubblewrap is not installed" in around.missing[Condition.READ_ONLY]
    assert "unzip has one folder" in around.missing[Condition.PLATLIB]
    assert "can be safe from LD_LIBRARY_PATH" in around.missing[Condition.LIBRARIES]
    assert "HOME" not in around.env
    assert "bubblewrap is not installed" in around.applied[Condition.HOME]
    assert set(around.applied) | set(around.missing) == set(Condition)


def test_site_packages_are_not_split_if_the_system_has_what_other_wheels_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Debian's CUDA in a root, the loader finds that, and no code loads the wheels'."""
    cache = "2 libs found\n\tlibcudart.so.12 (libc6,x86-64) => /usr/lib/libcudart.so.12\n"
    monkeypatch.setattr(hostile_conditions, "_loader_cache", lambda: cache)
    specimen, installation = surroundings_of("cu124", tmp_path)
    site = tmp_path / "env/lib/python3.12/site-packages"
    site.mkdir(parents=True)
    installation = msgspec.structs.replace(
        installation, installer=Installer.PIP, sites=(str(site),)
    )
    around = hostile(
        plain(installation, tmp_path / "a"), specimen, tmp_path / "b", [Condition.PLATLIB]
    )
    assert around.missing == {Condition.PLATLIB: "the loader finds the system's `libcudart.so.12`"}


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_wrong_libraries_have_the_names_that_users_met(tmp_path: Path) -> None:
    specimen, installation = surroundings_of("cpu", tmp_path)
    around = plain(installation, tmp_path / "a")
    around = hostile(around, specimen, tmp_path / "b", [Condition.LIBRARIES])
    folder = Path(around.env["LD_LIBRARY_PATH"])
    assert all((folder / name).exists() for name in load_hostility().libraries)
    assert set(around.applied) == {Condition.LIBRARIES}
    assert around.env["HOME"]


def test_what_a_package_can_not_survive_together_is_done_in_turns(tmp_path: Path) -> None:
    def conditions(
        compute: str, environment: Environment, *, beside: tuple[str, ...] = ()
    ) -> frozenset[Condition]:
        wheel = PackageUnderTest(path="x.whl", format="wheel", name="x", compute=compute)
        site = tmp_path / "-".join(beside)
        for name in ("torch", *(f"{name}.dist-info" for name in beside)):
            (site / name).mkdir(parents=True, exist_ok=True)
        installation = Installation(
            installer=Installer.UV, prefix=str(tmp_path), sites=(str(site),), modules=("x",)
        )
        return conditions_of(environment, wheel, installation)

    assert conditions("cpu", Environment.HOSTILE) == set(Condition)
    assert set(Condition) - conditions("cu130", Environment.HOSTILE) == {Condition.PLATLIB}
    assert set(Condition) - conditions("cu130", Environment.SPLIT) == {Condition.LIBRARIES}
    assert not conditions("cu130", Environment.CLEAN)
    assert conditions("xpu", Environment.HOSTILE) == set(Condition)
    alone, gpu = ("torch-2.14.1",), ("torch-2.14.1", "nvidia_cublas-13.1.1")
    assert conditions("cpu", Environment.HOSTILE, beside=alone) == set(Condition)
    split = conditions("cpu", Environment.HOSTILE, beside=gpu)
    assert set(Condition) - split == {Condition.PLATLIB}


def test_a_clean_environment_has_nothing_of_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    _, installation = surroundings_of("cpu", tmp_path)
    around = plain(installation, tmp_path / "a")
    assert set(around.env) == {"PATH", "HOME", "TMPDIR", "LANG", "USER"}
    assert Path(around.env["HOME"]).is_dir()


def test_tests_compute_on_the_gpus_that_the_caller_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU is a fake: only its device file is looked for."""
    (tmp_path / "nvidia1").touch()
    monkeypatch.setattr("torchyard.smoke.attempt._DEVICES", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3")
    code = (
        "import os\nprint('note:', *(f'{n}={os.environ[n]}' for n in os.environ if '_VIS' in n))\n"
    )
    write(tmp_path, "own/a.py", f"{GOOD}# needs: gpu\n{code}")
    (test,) = read_suite(tmp_path / "own")
    package, installation = surroundings_of("cu130", tmp_path)
    installation = msgspec.structs.replace(installation, python=sys.executable)
    found = attempt(test, package, plain(installation, tmp_path / "home"), tmp_path / "run")
    assert (found.outcome, found.why) == (Outcome.PASSED, "CUDA_VISIBLE_DEVICES=1")


# ------------------------------------------------------------------ how programs end

PYTHON = (sys.executable, "-I", "-X", "faulthandler", "-c")


def tried(tmp_path: Path, code: str, seconds: float = 20.0, *wrapper: str) -> tuple[str, int, bool]:
    env = {"PATH": os.defpath}
    argv = [*PYTHON, code]
    trial = run_with_timeout(
        argv, cwd=tmp_path, env=env, seconds=seconds, wrapper=wrapper, is_python=True
    )
    return "\n".join(trial.lines), trial.code, trial.late


HANGS = """
import threading, time
def wait_for_nothing(): time.sleep(600)
threading.Thread(target=wait_for_nothing).start()
def hang(): wait_for_nothing()
hang()
"""


@pytest.mark.parametrize(
    "wrapper",
    [
        (),
        pytest.param(
            ("bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--"),
            marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bwrap here"),
        ),
    ],
    ids=["bare", "wrapped"],
)
def test_a_hang_is_told_with_the_stacks_of_all_threads(
    tmp_path: Path, wrapper: tuple[str, ...]
) -> None:
    text, _, late = tried(tmp_path, HANGS, 3.0, *wrapper)
    assert late
    assert "not done after 3 s" in text
    assert "in hang" in text
    assert text.count("in wait_for_nothing") == 2


@pytest.mark.parametrize(
    "wrapper",
    [
        (),
        pytest.param(
            ("bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--"),
            marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bwrap here"),
        ),
    ],
    ids=["bare", "wrapped"],
)
def test_a_crash_names_the_signal_and_the_place(tmp_path: Path, wrapper: tuple[str, ...]) -> None:
    code = "import ctypes\ndef fall(): ctypes.string_at(0)\nfall()\n"
    env = {"PATH": os.defpath}
    trial = run_with_timeout(
        [*PYTHON, code], cwd=tmp_path, env=env, seconds=20, wrapper=wrapper, is_python=True
    )
    assert trial.signal == "SIGSEGV"
    assert "in fall" in "\n".join(trial.lines)


def test_an_exit_code_that_is_no_signal_stays_one(tmp_path: Path) -> None:
    text, code, _ = tried(tmp_path, "print('so', flush=True); raise SystemExit(-1)", 20, "env")
    assert (text, code) == ("so", 255)


def test_a_signal_without_a_name_has_a_number(tmp_path: Path) -> None:
    argv = [*PYTHON, "import os; os.kill(os.getpid(), 40)"]
    trial = run_with_timeout(argv, cwd=tmp_path, env={"PATH": os.defpath}, seconds=20)
    assert trial.signal == "signal 40"


@pytest.mark.parametrize("is_apart", [False, True], ids=["group", "session"])
def test_what_a_program_left_running_is_ended(tmp_path: Path, is_apart: bool) -> None:
    code = (
        "import subprocess, sys\n"
        "argv = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        f"child = subprocess.Popen(argv, start_new_session={is_apart})\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    text, _, late = tried(tmp_path, code, 3.0)
    assert late
    with suppress(psutil.NoSuchProcess):
        child = psutil.Process(int(text.splitlines()[0]))
        until = time.monotonic() + 60
        while child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bwrap here")
@pytest.mark.parametrize("code", [200, 255])
def test_a_large_exit_code_is_no_signal(tmp_path: Path, code: int) -> None:
    wrapper = ("bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--")
    env = {"PATH": os.defpath}
    argv = ["/bin/sh", "-c", f"exit {code}"]
    trial = run_with_timeout(argv, cwd=tmp_path, env=env, seconds=20, wrapper=wrapper)
    assert (trial.code, trial.signal) == (code, "")


def test_a_signal_without_a_name_is_told_by_its_number(tmp_path: Path) -> None:
    argv = ["/bin/sh", "-c", "kill -40 $$"]
    trial = run_with_timeout(argv, cwd=tmp_path, env={"PATH": os.defpath}, seconds=20)
    assert trial.signal == "signal 40"


def test_where_another_program_hangs_is_told(tmp_path: Path) -> None:
    trial = run_with_timeout(
        ["/bin/sleep", "600"], cwd=tmp_path, env={"PATH": os.defpath}, seconds=2
    )
    assert trial.late
    told = "\n".join(trial.lines)
    assert "nanosleep" in told


ON_ONE_PROCESSOR = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
"""
HOG = "print(flush=True)\nend = time.monotonic() + BUSY\nwhile time.monotonic() < end: pass\n"
STARVES = """
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
if os.path.exists("/proc/self/autogroup"):  # else each session has an equal share
    with open("/proc/self/autogroup", "w") as file: file.write("19")
for _ in range(LOOPS): pass
print("well")
"""
needs_idle = pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux starves so")


def starved(tmp_path: Path, busy: float, seconds: float, loops: int) -> TimedRun:
    """Run a program that shares its processor with another one, which gets nearly all of it."""
    hog = [*PYTHON, ON_ONE_PROCESSOR + HOG.replace("BUSY", str(busy))]
    with subprocess.Popen(hog, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        code = ON_ONE_PROCESSOR + STARVES.replace("LOOPS", str(loops))
        argv, env = [*PYTHON, code], {"PATH": os.defpath}
        trial = run_with_timeout(argv, cwd=tmp_path, env=env, seconds=seconds)
        other.kill()
    return trial


@needs_idle
def test_a_program_that_the_machine_never_runs_is_not_said_to_be_slow(tmp_path: Path) -> None:
    trial = starved(tmp_path, busy=60, seconds=0.3, loops=10**9)
    assert (trial.late, trial.starved) == (True, True)
    outcome, why = _verdict(trial, built_in("any")[0])
    assert outcome is Outcome.NOT_DECIDED
    assert why.startswith(f"the machine was too busy: in {trial.seconds:.0f} s it used 0.")


@pytest.mark.slow
@needs_idle
def test_time_in_which_the_machine_was_busy_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchyard.host.timed_run._PATIENCE", 1000)  # others may be busy here
    trial = starved(tmp_path, busy=2, seconds=0.5, loops=3_000_000)
    assert (trial.lines[-1], trial.late, trial.starved) == ("well", False, False)
    assert trial.seconds > 0.5


def test_a_program_that_hangs_ends_in_time_and_is_said_to_hang(tmp_path: Path) -> None:
    trial = run_with_timeout(["sleep", "600"], cwd=tmp_path, env={"PATH": os.defpath}, seconds=1)
    assert (trial.late, trial.starved) == (True, False)
    test = msgspec.structs.replace(built_in("any")[0], timeout=1)
    assert _verdict(trial, test)[1].endswith("s of processor time, so it hangs")


def test_a_package_is_not_said_to_fail_if_a_test_was_not_decided() -> None:
    good = {"install": Outcome.PASSED, "any/import.py": Outcome.NOT_DECIDED}
    assert verdict(good).startswith("it is not decided whether it works: ")
    assert verdict({**good, "any/version.py": Outcome.FAILED}).startswith("it does not work: ")


def test_a_program_that_ends_in_time_is_let_be(tmp_path: Path) -> None:
    text, code, late = tried(tmp_path, "print('well')")
    assert (text, code, late) == ("well", 0, False)
