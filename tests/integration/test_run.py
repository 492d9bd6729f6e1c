"""`torchyard run`, `shell` and `rebuild`, with real steps."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.helpers import CORE, PACKAGE, WORKS, Command, make_project

from torchyard.host.process_id import group_is_running
from torchyard.model.canonical import fingerprint
from torchyard.model.event import AnyEvent, Noted
from torchyard.model.result import Usage
from torchyard.recipes import steps_of
from torchyard.run.conditions import Conditions
from torchyard.run.job import run_job
from torchyard.run.workdir import JobState, WorkDir
from torchyard.store.keys import result_key
from torchyard.store.store import Store
from torchyard.store.verify import verify
from torchyard.workspace.run import find_job_spec

pytestmark = pytest.mark.integration

TORCHYARD = [sys.executable, "-m", "torchyard"]
needs_bwrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


def run_all(torchyard: Command, file: Path, *args: object) -> None:
    for job in (
        "source:demo-1.0",
        CORE,
        "bindings:demo-1.0/linux-x86_64/cpu-openblas/cp312",
        PACKAGE,
    ):
        result = torchyard("run", job, "-f", file, *args)
        assert result.code == 0, result.err


def made_wheel(torchyard: Command, file: Path) -> Path:
    """Make a package, and take it out of the store."""
    run_all(torchyard, file)
    torchyard("store", "get", PACKAGE, "-o", file.parent / "dist", "-f", file)
    (wheel,) = (file.parent / "dist").glob("*.whl")
    return wheel


def log_of(torchyard: Command, file: Path, job: str) -> str:
    return torchyard("store", "show", job, "--log", "-f", file).out


def test_a_job_leaves_its_result_and_nothing_else(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    run_all(torchyard, file)
    assert not list((tmp_path / ".torchyard/work").iterdir())
    store = Store.at(str(tmp_path / ".torchyard/store"))
    assert verify(store).is_clean
    assert len(list(store.fingerprints())) == 4
    assert not list(store.objects.list("claims/"))
    shown = json.loads(torchyard("store", "show", CORE, "--json", "-f", file).out)
    (core,) = shown["results"]
    assert [entry["path"] for entry in core["tree"]["files"]] == ["lib/core.bin", "listing"]
    assert [step["step"] for step in core["steps"]] == ["compile", "list"]
    assert all(step["memory"] > 0 and step["disk"] > 0 for step in core["steps"])
    again = torchyard("run", CORE, "-f", file)
    assert again.err.startswith("cached")


def test_a_job_without_its_inputs_says_which(torchyard: Command, tmp_path: Path) -> None:
    result = torchyard("run", CORE, "-f", make_project(tmp_path))
    assert result.code == 10
    assert "no result of source:demo-1.0" in result.err
    assert "`torchyard build` makes everything that a job needs" in result.err


def test_a_failed_job_goes_on_behind_its_last_good_step(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS.replace(
        "ls {out}/lib > {out}/listing",
        "test -e {base}/mended || (echo 'a.cc:3:1: error: no such thing' >&2; seq 50; exit 3)",
    ).replace("{base}", str(tmp_path))
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    failed = torchyard("run", CORE, "-f", file)
    assert failed.code == 9
    assert "`list` failed with exit code 3" in failed.err
    assert "error: no such thing" in failed.err
    assert "| 50" not in failed.err, "the last lines do not tell why"
    assert "look around: torchyard shell" in failed.err
    (work,) = [path for path in (tmp_path / ".torchyard/work").iterdir() if path.is_dir()]
    assert "no such thing" in (work / "log").read_text(encoding="utf-8")

    (tmp_path / "mended").touch()
    (work / "job/out/lib/core.bin").write_text("not made again", encoding="utf-8")
    assert torchyard("run", CORE, "-f", file).code == 0
    log = log_of(torchyard, file, CORE)
    assert "step 1/2 was done by an earlier run: compile" in log
    torchyard("store", "get", CORE, "-o", tmp_path / "got", "-f", file)
    assert (tmp_path / "got/lib/core.bin").read_text(encoding="utf-8") == "not made again"


_300_MB = "head -c 300000000"
_ERROR = f"a.c:3:1: error: {'no such thing ' * 60}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "prints",
    [f"yes '{_ERROR}' | {_300_MB}", f"yes | tr -d '[:space:]' | {_300_MB}"],
    ids=["lines", "one line"],
)
def test_a_log_of_300_mb_takes_little_memory_and_its_diagnosis_little_time(
    torchyard: Command, tmp_path: Path, prints: str
) -> None:
    text = WORKS.replace("mkdir -p {out}/lib", f"{prints}; exit 1", 1)
    file = make_project(tmp_path, text)
    assert torchyard("run", "source:demo-1.0", "-f", file).code == 0
    argv = [*TORCHYARD, "run", CORE, "-f", str(file)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        assert process.stderr
        said = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 9, said
    assert "`compile` failed with exit code 1" in said
    assert ("error: no such thing" in said) == ("error" in prints)
    assert len(said) < 10_000
    assert usage.ru_maxrss < 150_000, "kilobytes, of torchyard's process and its children"
    assert usage.ru_utime < 100, "it took two minutes to search 60 MB"
    (log,) = (tmp_path / ".torchyard/work").glob("*/log")
    assert log.stat().st_size >= 300_000_000


def test_who_waited_for_a_job_leaves_a_directory_that_is_to_be_kept(
    torchyard: Command, tmp_path: Path
) -> None:
    file, url = make_project(tmp_path), tmp_path / "store"
    torchyard("run", "source:demo-1.0", "-f", file, "--store", url)
    assert torchyard("run", CORE, "--keep", "-f", file, "--store", url).code == 0
    store = Store.at(str(url))
    (made,) = [result for result in store.results() if result.id == CORE]
    store.objects.delete([result_key(made.fingerprint)])  # it is not done yet
    work = tmp_path / ".torchyard/work"
    workdir = WorkDir(work, made.spec)
    with ExitStack() as other:
        other.enter_context(workdir.alone(wait=True))

        def hear(event: AnyEvent) -> None:
            if isinstance(event, Noted):
                assert "waiting for another process" in event.text
                store.publish(made)
                other.close()

        done = run_job(made.spec, store, Conditions(work, str(file)), hear)
    assert not done.built
    assert (workdir.out / "lib/core.bin").exists()


def test_a_step_that_makes_nothing_fails(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(
        tmp_path, WORKS.replace('outputs = ["lib/*.bin"]', 'outputs = ["lib/*.so"]')
    )
    torchyard("run", "source:demo-1.0", "-f", file)
    failed = torchyard("run", CORE, "-f", file)
    assert failed.code == 9
    assert "made no `lib/*.so`" in failed.err


def test_nothing_of_the_caller_leaks(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRECIOUS_TOKEN", "hunter2")
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    text = WORKS.replace('["sh", "-c", "ls {out}/lib > {out}/listing"]', '"env > {out}/env"')
    text += '\n[[override]]\nstage = "core"\npass_env = ["WANTED"]\nenv = { GIVEN = "1" }\n'
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    assert torchyard("run", CORE, "-f", file).code == 0
    torchyard("store", "get", CORE, "-o", tmp_path / "got", "-f", file)
    env = (tmp_path / "got/env").read_text(encoding="utf-8")
    names = {line.partition("=")[0] for line in env.splitlines()}
    assert "hunter2" not in env
    assert "LD_LIBRARY_PATH" not in names
    assert {"WANTED", "GIVEN", "PATH", "HOME"} <= names
    shown = json.loads(torchyard("store", "show", CORE, "--json", "-f", file).out)
    recorded = shown["results"][0]["environment"]
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == set(recorded), "what it got is what is kept"
    assert recorded["GIVEN"] == "1"
    assert recorded["WANTED"] == "(the caller's)"
    assert "WANTED=yes" not in log_of(torchyard, file, CORE)
    assert "hunter2" not in json.dumps(shown)


def test_programs_are_found_where_the_step_is(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS.replace(
        '["sh", "-c", "ls {out}/lib > {out}/listing"]', '["./tool"]\ncwd = "{source}"'
    )
    file = make_project(tmp_path, text)
    (tmp_path / "code/tool").write_text("#!/bin/sh\necho works\n", encoding="utf-8")
    (tmp_path / "code/tool").chmod(0o755)
    torchyard("run", "source:demo-1.0", "-f", file)
    ran = torchyard("run", CORE, "-f", file)
    assert ran.code == 0, ran.err
    assert "works" in log_of(torchyard, file, CORE)


def test_what_a_step_leaves_running_is_ended(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS.replace("ls {out}/lib >", f"(sleep 300 & echo $! > {tmp_path}/pid); ls >")
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    assert torchyard("run", CORE, "-f", file).code == 0
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    gone = not Path(f"/proc/{pid}").exists()
    assert gone or "Z" in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")


@needs_bwrap
def test_the_shell_shows_what_was_left_and_removes_nothing(tmp_path: Path) -> None:
    text = WORKS.replace('name = "list"', 'name = "list"\nenv = { PLACE = "{out}/lib" }')
    file = make_project(tmp_path, text.replace("ls {out}/lib >", "exit 1; ls {out}/lib >"))
    command = [*TORCHYARD, "run", "-f", str(file)]
    subprocess.run([*command, "source:demo-1.0"], check=True)
    failed = subprocess.run([*command, CORE, "--sandbox", "bwrap"], check=False)
    assert failed.returncode == 9
    shell = subprocess.run(
        [*TORCHYARD, "shell", CORE, "-f", str(file), "--", "sh", "-c", 'cat "$PLACE/core.bin"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout == "some code\nmore code\n"
    assert "{out} is /mnt/torchyard/out" in shell.stderr
    short = [*TORCHYARD, "shell", "core:cpu", "-f", str(file), "--", "ls"]
    assert subprocess.run(short, check=False).returncode == 0, "a part of the name is enough"


@needs_bwrap
def test_the_shell_of_a_finished_job_has_its_result_and_no_run_continues_from_it(
    torchyard: Command, tmp_path: Path
) -> None:
    file = make_project(tmp_path)
    for job in ("source:demo-1.0", CORE):
        assert torchyard("run", job, "-f", file).code == 0
    assert not list((tmp_path / ".torchyard/work").iterdir())
    line = "cat ../out/lib/core.bin; echo changed > ../out/lib/core.bin"
    look = [*TORCHYARD, "shell", CORE, "-f", str(file), "--", "sh", "-c", line]
    first, second = (
        subprocess.run(look, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert first.stdout == "some code\nmore code\n"
    assert "its result is restored" in first.stderr
    assert second.stdout == "changed\n"
    store = Store.at(str(tmp_path / ".torchyard/store"))
    (before,) = (one for one in store.results() if one.id == CORE)
    store.objects.delete([result_key(before.fingerprint)])
    assert torchyard("run", CORE, "-f", file).code == 0
    (after,) = (one for one in store.results() if one.id == CORE)
    assert [one.digest for one in after.tree.files] == [one.digest for one in before.tree.files]


@needs_bwrap
def test_a_shell_in_a_sandbox_has_variables_that_its_maker_has_not(tmp_path: Path) -> None:
    """With those of the next step, bwrap would load code that the failed one has left."""
    env = '{ LD_DEBUG = "libs", LD_DEBUG_OUTPUT = "job/out/trace" }'
    text = WORKS.replace('name = "list"', f'name = "list"\nenv = {env}')
    file = make_project(tmp_path, text.replace("ls {out}/lib >", "exit 1; ls {out}/lib >"))
    for job in ("source:demo-1.0", CORE):
        subprocess.run([*TORCHYARD, "run", "-f", str(file), job], check=False)
    words = [*TORCHYARD, "shell", CORE, "-f", str(file), "--", "sh", "-c", "echo in $LD_DEBUG"]
    shell = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "in libs\n" in shell.stdout
    assert not [*tmp_path.rglob("trace*")]


@needs_bwrap
def test_a_job_that_runs_can_be_looked_into_by_its_name(torchyard: Command, tmp_path: Path) -> None:
    waits = "echo begun; until test -e {{work}}/home/go; do sleep 0.1; done; ls {out}/lib >"
    file = make_project(
        tmp_path, WORKS.replace("ls {out}/lib >", waits.replace("{{work}}", "{work}"))
    )
    torchyard("run", "source:demo-1.0", "-f", file)
    assert "has not run" in torchyard("status", CORE, "-f", file).out
    with subprocess.Popen([*TORCHYARD, "run", CORE, "-f", str(file)]) as running:
        until = time.monotonic() + 60
        while "\n  begun\n" not in (shown := torchyard("status", CORE, "-f", file).out):
            assert time.monotonic() < until, shown
        assert f"{CORE} runs: 1 of 2 steps done" in shown
        assert "step: list" in shown
        for command in ("timings", "graph"):
            early = torchyard(command, CORE, "-f", file)
            assert (early.code, early.out) == (5, "")
            assert f"ninja has finished nothing of {CORE}" in early.err
        assert torchyard("diagnose", CORE, "-f", file).code == 0
        line = "cat ../out/lib/core.bin; touch ../home/go"
        look = [*TORCHYARD, "shell", CORE, "-f", str(file), "--", "sh", "-c", line]
        shell = subprocess.run(look, capture_output=True, text=True, check=True)
        assert shell.stdout == "some code\nmore code\n"
        assert "is running" in shell.stderr
        assert running.wait() == 0, "it was not disturbed"
    assert "is finished: made in" in torchyard("status", CORE, "-f", file).out
    assert not list((tmp_path / ".torchyard/work").iterdir())


@pytest.mark.parametrize(
    ("ends", "told"),
    [("exit 3;", "`list` failed with exit code 3"), ("kill -9 $PPID;", "+ sh -c 'kill")],
)
def test_the_status_of_a_job_that_failed_or_was_killed(
    torchyard: Command, tmp_path: Path, ends: str, told: str
) -> None:
    file = make_project(tmp_path, WORKS.replace("ls {out}/lib >", f"{ends} ls {{out}}/lib >"))
    for job in ("source:demo-1.0", CORE):
        subprocess.run([*TORCHYARD, "run", job, "-f", file, "--sandbox", "none"], check=False)
    shown = torchyard("status", CORE, "-f", file).out
    assert f"{CORE} does not run, and did not finish: 1 of 2 steps done" in shown
    assert told in shown.partition("which ends:\n")[2]
    assert f"torchyard diagnose {CORE}" in shown


def test_a_job_without_its_file_tells_the_way_to_where_it_failed(tmp_path: Path) -> None:
    """As on a machine of a farm, which gets a spec and nothing else."""
    file = make_project(tmp_path, WORKS.replace("ls {out}/lib >", "exit 1; ls {out}/lib >"))
    for job in ("source:demo-1.0", CORE):
        subprocess.run([*TORCHYARD, "run", "-f", str(file), job], check=False)
    (spec,) = (tmp_path / ".torchyard/work").glob("core-*/torchyard-spec.json")
    far = tmp_path / "far"
    far.mkdir()
    store = tmp_path / ".torchyard/store"
    argv = [*TORCHYARD, "run", "--spec", str(spec), "--work", "work", "--store", str(store)]
    wide = {**os.environ, "COLUMNS": "1000"}
    failed = subprocess.run(argv, check=False, cwd=far, capture_output=True, text=True, env=wide)
    assert failed.returncode == 9
    hint = failed.stderr.rpartition("look around: torchyard ")[2].partition("  (log: ")[0]
    words = hint.split()
    look = [*TORCHYARD, *words, "--", "sh", "-c", "cat ../out/lib/core.bin"]
    shell = subprocess.run(look, check=True, cwd=tmp_path, capture_output=True, text=True)
    assert shell.stdout == "some code\nmore code\n"
    other = [*TORCHYARD, "shell", "source:demo-1.0", *words[2:]]
    wrong = subprocess.run(other, check=False, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert f"is the spec of {CORE}" in " ".join(wrong.stderr.split())


def test_outdated_work_is_removed(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path, WORKS.replace("ls {out}/lib >", "exit 1; ls {out}/lib >"))
    torchyard("run", "source:demo-1.0", "-f", file)
    torchyard("run", CORE, "-f", file)
    work = tmp_path / ".torchyard/work"
    (left,) = [path for path in work.iterdir() if path.is_dir()]
    kept = torchyard("store", "gc", "--grace", "0", "-f", file)
    assert left.exists(), "the same command would go on there"
    assert "core" not in kept.out
    file.write_text(WORKS, encoding="utf-8")
    young = torchyard("store", "gc", "-f", file)
    assert left.exists(), young.out
    gone = torchyard("store", "gc", "--grace", "0", "-f", file)
    assert f"removed {left}" in gone.out
    assert not list(work.iterdir())


def test_a_secret_cannot_be_passed(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS + '\n[[override]]\nstage = "core"\npass_env = ["PYPI_TOKEN"]\n'
    result = torchyard("plan", "-f", make_project(tmp_path, text))
    assert result.code == 3
    assert "`PYPI_TOKEN` looks like a secret" in result.err


@pytest.mark.parametrize(
    ("written", "instead", "what"),
    [
        ("{source}/*.txt", "{sorce}/*.txt", "steps of stage `core` have no `{sorce}`"),
        ("{core}/lib", "{package}/lib", "steps of stage `bindings` have no `{package}`"),
        (
            'name = "list"\nrun = ["sh",',
            'name = "list"\nrun = []\nenv = ["sh",',
            "must be a table of strings",
        ),
        ("check = []", 'check = [{ run = "" }]', "a step must run a command"),
        ("cp {bindings}", "cp {source}", "core, bindings has it: let a step there write"),
    ],
)
def test_mistakes_in_steps(
    torchyard: Command, tmp_path: Path, written: str, instead: str, what: str
) -> None:
    assert written in WORKS
    result = torchyard("plan", "-f", make_project(tmp_path, WORKS.replace(written, instead)))
    assert result.code == 3
    assert what.lower() in result.err.lower()


def test_braces_of_a_shell_stay(torchyard: Command, tmp_path: Path) -> None:
    words = """x=1; echo "${x} {{y}}" > {out}/listing"""
    text = WORKS.replace("""["sh", "-c", "ls {out}/lib > {out}/listing"]""", f"'''{words}'''")
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    assert torchyard("run", CORE, "-f", file).code == 0
    torchyard("store", "get", CORE, "-o", tmp_path / "got", "-f", file)
    assert (tmp_path / "got/listing").read_text(encoding="utf-8") == "1 {y}\n"


def test_the_steps_are_part_of_the_fingerprint(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    changed = tmp_path / "changed.toml"
    changed.write_text(WORKS.replace("echo {python}", "echo py{python}"), encoding="utf-8")
    told = torchyard("plan", "diff", file, changed)
    assert "2 packages to rebuild" in told.out
    assert "steps" in told.out


def test_a_line_for_the_shell_stops_at_what_goes_wrong_in_a_pipe(
    torchyard: Command, tmp_path: Path
) -> None:
    text = WORKS.replace("cat {source}/*.txt >", "cta {source}/*.txt | cat >")
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    failed = torchyard("run", CORE, "-f", file)
    assert failed.code == 9
    assert "cta: command not found" in failed.err


def test_directories_may_have_any_name(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS.replace('["sh", "-c", "ls {out}/lib > {out}/listing"]', '["touch", "{out}/x y"]')
    file = make_project(tmp_path / "sp ace ü $(touch no) '", text)
    run_all(torchyard, file)
    assert not (tmp_path / "no").exists()
    assert [path.name for path in tmp_path.iterdir()] == [file.parent.name]


def test_a_package_job_makes_a_package(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS[: WORKS.index("[[steps.package]]")] + "[steps]\npackage = []\n"
    file = make_project(tmp_path, text)
    for job in ("source:demo-1.0", CORE, "bindings:demo-1.0/linux-x86_64/cpu-openblas/cp312"):
        torchyard("run", job, "-f", file)
    result = torchyard("run", PACKAGE, "-f", file)
    assert result.code == 9
    assert "there is no package in {out}" in result.err


def test_a_damaged_input_is_taken_out(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    torchyard("run", "source:demo-1.0", "-f", file)
    store = Store.at(str(tmp_path / ".torchyard/store"))
    (source,) = store.results()
    store.objects.write(f"blobs/{(d := source.tree.files[0].digest)[:2]}/{d}", b"rubbish")
    failed = torchyard("run", CORE, "-f", file)
    assert failed.code == 10
    assert "; it was taken out of the store" in failed.err
    assert not store.has(source.fingerprint)
    run_all(torchyard, file)
    assert verify(store).is_clean


def test_files_of_two_results_never_hide_each_other(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS.replace(
        "> {out}/{python}.bin; echo {python} >> {out}/{python}.bin", "> {out}/x.bin"
    )
    file = make_project(tmp_path, text.replace("cat {core}/lib/core.bin", "echo {python}"))
    run_all(torchyard, file)
    torchyard("run", "bindings:demo-1.0/linux-x86_64/cpu-openblas/cp311", "-f", file)
    result = torchyard("store", "get", "bindings:*", "-o", tmp_path / "got", "-f", file)
    assert result.code == 5
    assert "both have a file `x.bin`, with different content" in result.err
    assert not (tmp_path / "got").exists()


def test_rebuilding_never_takes_the_package_from_the_store(
    torchyard: Command, tmp_path: Path
) -> None:
    text = WORKS.replace(
        "cp {bindings}/*.bin {spec} .", "cp {bindings}/*.bin {spec} .; date +%N > t"
    )
    file = make_project(tmp_path, text)
    wheel = made_wheel(torchyard, file)
    store = tmp_path / ".torchyard/store"
    result = torchyard(
        "rebuild", wheel, "--yes", "-f", file, "--store", store, "--work", tmp_path / "w"
    )
    assert result.code == 12
    assert "t differs" in result.err
    again = torchyard(
        "rebuild", wheel, "--yes", "-f", file, "--store", store, "--work", tmp_path / "w"
    )
    assert f"started  {PACKAGE}" in again.err, "each time anew"
    assert f"note     {CORE}: is taken from the store unchanged" in result.err


def test_only_what_builds_makes_a_store(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    for words in (["ls"], ["verify"], ["gc"], ["push", tmp_path / "other"]):
        result = torchyard("store", *words, "--store", tmp_path / "typo", "-f", file)
        assert result.code == 5, words
        assert "there is no store" in result.err
    assert not (tmp_path / "typo").exists()
    missing = torchyard("store", "pull", tmp_path / "typo", "-f", file)
    assert missing.code == 5
    for url in ("s3://", "file://relative/x"):
        assert torchyard("store", "ls", "--store", url, "-f", file).code == 2


def test_a_package_is_checked_by_us_unless_the_file_has_steps(
    torchyard: Command, tmp_path: Path
) -> None:
    file = make_project(tmp_path, WORKS.replace("check = []", ""))
    run_all(torchyard, file)
    result = torchyard("run", PACKAGE.replace("package:", "check:"), "-f", file)
    assert result.code == 13
    assert "error dist-info" in result.err
    assert "look around: torchyard shell" in result.err


def test_a_cell_stands_for_its_package_job(torchyard: Command, tmp_path: Path) -> None:
    result = torchyard("run", PACKAGE.partition(":")[2], "-f", make_project(tmp_path))
    assert result.err.startswith(f"started  {PACKAGE}\n")
    assert result.code == 10, "its core is not there"


def test_a_changed_spec_is_refused(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    wheel = made_wheel(torchyard, file)
    with zipfile.ZipFile(wheel) as archive:
        spec = archive.read("torchyard-spec.json")
    (tmp_path / "spec.json").write_bytes(spec.replace(b"cat", b"dog"))
    result = torchyard("run", "--spec", tmp_path / "spec.json", "-f", file)
    assert result.code == 10
    assert "was changed" in result.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": ["true", "a\0b"]}, "a step has a NUL character"),
        ({"run": []}, "a step has no words"),
        ({"env": {"A=B": "1"}}, "a step has a variable with `=` in its name"),
        ({"run": ["ls", "{nowhere}"]}, "a step uses {nowhere}, which it does not have"),
    ],
)
def test_a_spec_with_steps_that_cannot_be_started(
    change: dict[str, object], said: str, torchyard: Command, tmp_path: Path
) -> None:
    file = make_project(tmp_path)
    torchyard("run", "source:demo-1.0", "-f", file)
    spec, _ = find_job_spec(CORE, None, str(file), ())
    steps = tuple(replace(step, **change) for step in steps_of(spec))
    task = replace(spec.task, settings={**spec.task.settings, "steps": steps})
    task = replace(task, fingerprint=fingerprint(task.payload))
    changed = replace(spec, tasks=(*spec.tasks[:-1], task))
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(changed))
    result = torchyard("run", "--spec", tmp_path / "spec.json", "-f", file)
    assert result.code == 9
    assert said in " ".join(result.err.split())


def test_a_source_that_changed_since_the_plan(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    wheel = made_wheel(torchyard, file)
    (tmp_path / "code/a.txt").write_text("changed\n", encoding="utf-8")
    result = torchyard("rebuild", wheel, "--yes", "-f", file)
    assert "has changed since the plan was made" in result.err


def test_the_shell_is_where_the_job_works(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    subprocess.run([*TORCHYARD, "run", "source:demo-1.0", "-f", file], check=True)
    words = [*TORCHYARD, "shell", CORE, "-f", str(file), "--"]
    script = "pwd; cat ../inputs/source/a.txt; echo $SOURCE_DATE_EPOCH $SECRET; ninja --version"
    env = {**os.environ, "SECRET": "hunter2"}
    shell = subprocess.run(
        [*words, "sh", "-c", script], env=env, capture_output=True, text=True, check=True
    )
    place, code, epoch, ninja = shell.stdout.splitlines()
    assert place.endswith("/build")
    assert (code, epoch) == ("some code", "315532800")
    assert ninja.startswith("1.13")


def test_a_package_is_rebuilt_from_itself_alone(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    wheel = made_wheel(torchyard, file)
    same = torchyard("rebuild", wheel, "--yes", "-f", file)
    assert same.code == 0, same.err
    assert "the same, byte for byte" in same.out
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("virus.py", "")
    other = torchyard("rebuild", wheel, "--yes", "-f", file)
    assert other.code == 12
    assert "virus.py is gone" in other.err
    with zipfile.ZipFile(tmp_path / "bare.whl", "w") as archive:
        archive.writestr("x", "")
    bare = torchyard("rebuild", tmp_path / "bare.whl", "-f", file)
    assert bare.code == 10
    assert "does not say how it was made" in bare.err


def test_a_commit_is_checked_out(torchyard: Command, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    (repository / "a.txt").write_text("from git\n", encoding="utf-8")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "v1"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout.strip()
    text = WORKS.replace('path = "code"', f'git = "file://{repository}"\nrev = "v1"')
    file = make_project(tmp_path / "project", text)
    moving = torchyard("run", "source:demo-1.0", "-f", file)
    assert moving.code == 7
    assert f'write commit = "{head}" beside it' in moving.err
    file.write_text(text.replace('rev = "v1"', f'rev = "v1"\ncommit = "{head}"'), encoding="utf-8")
    assert torchyard("run", "source:demo-1.0", "-f", file).code == 0
    torchyard("store", "get", "source:*", "-o", tmp_path / "got", "-f", file)
    assert [path.name for path in (tmp_path / "got").glob("[!.]*")] == ["a.txt"]


def test_two_runs_of_one_job_at_once(tmp_path: Path) -> None:
    text = WORKS.replace("ls {out}/lib", "echo run >> {base}/runs; sleep 1; ls {out}/lib")
    file = make_project(tmp_path, text.replace("{base}", str(tmp_path)))
    subprocess.run([*TORCHYARD, "run", "source:demo-1.0", "-f", file], check=True)
    command = [*TORCHYARD, "run", CORE, "-f", str(file), "--work"]
    runs = [
        subprocess.Popen([*command, str(tmp_path / work)], stderr=subprocess.PIPE, text=True)
        for work in ("one", "two", "two")
    ]
    said = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    assert sum("built" in text for text in said) == 1
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "run\n"
    busy = subprocess.Popen([*command, str(tmp_path / "one")], stderr=subprocess.DEVNULL)
    assert busy.wait() == 0


def test_who_does_not_wait_is_told(tmp_path: Path) -> None:
    file = make_project(tmp_path, WORKS.replace("ls {out}/lib", "sleep 600; ls {out}/lib"))
    subprocess.run([*TORCHYARD, "run", "source:demo-1.0", "-f", file], check=True)
    command = [*TORCHYARD, "run", CORE, "-f", str(file)]
    first = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE)
    assert first.stdout is not None
    for line in first.stdout:
        if b'"list"' in line:
            break
    second = subprocess.run([*command, "--no-wait"], capture_output=True, text=True, check=False)
    elsewhere = subprocess.run(
        [*command, "--no-wait", "--work", tmp_path / "other"],
        capture_output=True,
        text=True,
        check=False,
    )
    first.send_signal(signal.SIGTERM)
    first.communicate()
    assert (second.returncode, elsewhere.returncode, first.returncode) == (11, 11, 143)
    assert "another process of this machine" in second.stderr
    assert f"process {first.pid} on " in elsewhere.stderr


def test_an_orphan_of_a_killed_run_is_ended_first(tmp_path: Path) -> None:
    """A run is killed while its step goes on; the next run must not share a place with it."""
    sleeps = f"test -e {tmp_path}/begun || (touch {tmp_path}/begun; sleep 1000)"
    text = WORKS.replace("ls {out}/lib", f"{sleeps}; ls {{out}}/lib")
    file = make_project(tmp_path, text)
    subprocess.run([*TORCHYARD, "run", "source:demo-1.0", "-f", file], check=True)
    command = [*TORCHYARD, "run", CORE, "-f", str(file)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as first:
        while not (tmp_path / "begun").exists():
            assert first.poll() is None
            time.sleep(0.02)
        first.kill()
    (state,) = (tmp_path / ".torchyard/work").glob("*/state.json")
    group = json.loads(state.read_text(encoding="utf-8"))["group"]
    assert group_is_running(group)
    subprocess.run(command, check=True)
    assert not group_is_running(group)


def test_what_killed_and_stopped_tries_used_is_added_up(torchyard: Command, tmp_path: Path) -> None:
    """Two tries are ended while their step works, by signals with and without warning."""
    works = f"while ! test -e {tmp_path}/go; do :; done"
    text = WORKS.replace("ls {out}/lib", f"{works}; ls {{out}}/lib")
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    command = [*TORCHYARD, "run", CORE, "-f", str(file)]
    used: list[Usage] = []
    for how in (signal.SIGKILL, signal.SIGTERM):
        before = used[-1].cpu if used else 0.0
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
            while (tried := unfinished(tmp_path)) is None or tried.cpu <= before:
                assert run.poll() is None
                time.sleep(0.02)
            run.send_signal(how)
        tried = unfinished(tmp_path)
        assert tried is not None
        used.append(tried)
    assert [one.tries for one in used] == [1, 2]
    (tmp_path / "go").touch()
    subprocess.run(command, check=True)
    (result,) = json.loads(torchyard("store", "show", CORE, "--json", "-f", file).out)["results"]
    compiled, listed = result["steps"]
    assert compiled.get("tries", 1) == 1
    assert listed["tries"] == 3
    assert listed["cpu"] >= used[-1].cpu > used[0].cpu > 0
    assert result["seconds"] >= listed["seconds"] >= used[-1].seconds > used[0].seconds
    assert listed["memory"] >= used[0].memory > 0
    shown = " ".join(torchyard("store", "show", CORE, "-f", file).out.split())
    assert "in 3 tries" in shown
    assert "list (3 tries)" in shown


def unfinished(folder: Path) -> Usage | None:
    """Return what tries of the step `list` used that did not end well, by its job's state."""
    for path in (folder / ".torchyard/work").glob("core-*/state.json"):
        used = msgspec.json.decode(path.read_bytes(), type=JobState).unfinished
        return used if used is not None and used.step == "list" else None
    return None


def test_a_number_that_another_process_has_now_is_left_alone(tmp_path: Path) -> None:
    """After a restart of the machine, the group of a killed run's step may be anybody's."""
    text = WORKS.replace("ls {out}/lib", "exit 1")
    file = make_project(tmp_path, text)
    subprocess.run([*TORCHYARD, "run", "source:demo-1.0", "-f", file], check=True)
    command = [*TORCHYARD, "run", CORE, "-f", str(file)]
    assert subprocess.run(command, check=False).returncode == 9
    (path,) = (tmp_path / ".torchyard/work").glob("*/state.json")
    state = json.loads(path.read_text(encoding="utf-8"))
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        path.write_text(json.dumps({**state, "group": stranger.pid}), encoding="utf-8")
        assert subprocess.run(command, check=False).returncode == 9
        assert stranger.poll() is None
        stranger.kill()


def test_a_directory_that_was_kept_is_left_alone(torchyard: Command, tmp_path: Path) -> None:
    file = make_project(tmp_path)
    torchyard("run", "source:demo-1.0", "-f", file)
    torchyard("run", CORE, "-f", file, "--keep")
    assert torchyard("run", CORE, "-f", file).err.startswith("cached")
    (kept,) = (tmp_path / ".torchyard/work").glob("core-*/job/out/listing")
    (kept.parents[2] / "kept").unlink()
    torchyard("run", CORE, "-f", file)
    assert not list((tmp_path / ".torchyard/work").iterdir())


@needs_bwrap
def test_the_sandbox(torchyard: Command, tmp_path: Path) -> None:
    script = """\
hostname; pwd; id -u > /dev/null; touch /usr/x 2>/dev/null && echo wrote;
touch /tmp/mine && echo temporary; ls /mnt; cat {source}/a.txt"""
    text = WORKS.replace(
        """["sh", "-c", "ls {out}/lib > {out}/listing"]""", f"'''({script}) > {{out}}/listing'''"
    )
    file = make_project(tmp_path, text + '\n[sandbox]\nkind = "bwrap"\n')
    torchyard("run", "source:demo-1.0", "-f", file)
    ran = torchyard("run", CORE, "-f", file)
    assert ran.code == 0, ran.err
    torchyard("store", "get", CORE, "-o", tmp_path / "got", "-f", file)
    lines = (tmp_path / "got/listing").read_text(encoding="utf-8").splitlines()
    seen = ["torchyard", "torchyard-spec.json"]
    assert lines == ["torchyard", "/mnt/torchyard/build", "temporary", *seen, "some code"]


@needs_bwrap
def test_a_sandboxed_job_that_wants_the_network_is_told(torchyard: Command, tmp_path: Path) -> None:
    script = "import urllib.request as r; r.urlopen('http://example.org')"
    text = WORKS.replace("ls {out}/lib > {out}/listing", f'python3 -c \\"{script}\\"')
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    result = torchyard("run", CORE, "-f", file, "--sandbox", "bwrap")
    assert result.code == 9
    assert "the sandbox gives this step no network" in result.err
    assert "network = true" in result.err


@needs_bwrap
def test_work_of_another_sandbox_is_not_gone_on_with(torchyard: Command, tmp_path: Path) -> None:
    """What was made at one path is of no use at another."""
    text = WORKS.replace("ls {out}/lib >", "test {work} = /mnt/torchyard && pwd >")
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    assert torchyard("run", CORE, "-f", file, "--sandbox", "none").code == 9
    assert torchyard("run", CORE, "-f", file, "--sandbox", "bwrap").code == 0
    log = log_of(torchyard, file, CORE)
    assert "was done by an earlier run" not in log


BURN = "import time; all(iter(lambda: time.process_time() < 2, False))"


@needs_bwrap
@pytest.mark.parametrize("kind", ["none", "bwrap"])
def test_the_time_of_processors_is_counted_in_every_sandbox(
    torchyard: Command, tmp_path: Path, kind: str
) -> None:
    """Bubblewrap does not wait for its child, so that nothing was counted in it."""
    burn = f"{sys.executable} -c '{BURN}'; mkdir"
    file = make_project(tmp_path, WORKS.replace("mkdir", burn, 1))
    torchyard("run", "source:demo-1.0", "-f", file)
    assert torchyard("run", CORE, "-f", file, "--sandbox", kind).code == 0
    (core,) = (r for r in Store.at(str(tmp_path / ".torchyard/store")).results() if r.id == CORE)
    assert sum(step.cpu for step in core.steps) > 1


def make_root(root: Path, *programs: str) -> None:
    """Make a system of a few programs and their libraries, which says that it is one package."""
    status = root / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    fields = ("Package: all", "Status: install ok installed", "Architecture: any", "Version: 1")
    status.write_text("\n".join(fields), encoding="utf-8")
    for name in ("mnt", "tmp", "proc", "dev"):
        (root / name).mkdir(parents=True)
    for program in (shutil.which(name) or name for name in programs):
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        libraries = [word for word in listed.stdout.split() if word.startswith("/")]
        for path in map(Path, (program, *libraries)):
            place = root / path.relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)


@needs_bwrap
def test_a_root_is_looked_for_beside_the_file(tmp_path: Path) -> None:
    make_root(tmp_path / "root", "bash", "sh", "mkdir", "cat", "ls")
    text = WORKS + '\n[toolchain]\nroot = "root"\n[sandbox]\nkind = "bwrap"\n'
    file = make_project(tmp_path, text)
    command = [*TORCHYARD, "build", "core:*", "-f", str(file)]
    subprocess.run(command, check=True, cwd="/")
    (core,) = [
        result
        for result in Store.at(str(tmp_path / ".torchyard/store")).results()
        if result.spec.task.stage == "core"
    ]
    assert core.facts["sandbox"] == "bwrap"
    assert core.environment["MAKEFLAGS"] == "-j1 -- --jobserver-auth=fifo:/mnt/slots"
    assert core.spec.sandbox.root == "root", "no path of this machine"
    (tmp_path / "other").symlink_to("/")
    file.write_text(text.replace('"root"', '"other"').replace("core.bin", "it.bin"), "utf-8")
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "contains files of this machine's users" in refused.stderr


@needs_bwrap
def test_a_root_that_is_none(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS + f'\n[toolchain]\nroot = "{tmp_path}"\n[sandbox]\nkind = "bwrap"\n'
    file = make_project(tmp_path, text)
    torchyard("run", "source:demo-1.0", "-f", file)
    result = torchyard("run", CORE, "-f", file)
    assert result.code == 7
    assert "it has no /usr" in result.err


def test_a_machine_refuses_jobs_of_stages_that_it_does_not_do(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_project(tmp_path)
    assert torchyard("run", "source:demo-1.0", "-f", file, "--stages", "core, source").code == 0
    monkeypatch.setenv("TORCHYARD_STAGES", "publish,smoke")
    for detach in ((), ("--detach",)):
        refused = torchyard("run", CORE, "-f", file, *detach)
        assert refused.code == 7
        assert f"this machine refuses {CORE}: it does smoke, publish, not core" in refused.err
        assert "send it to another machine" in refused.err
    assert not list((tmp_path / ".torchyard/work").iterdir())
    wrong = torchyard("run", CORE, "-f", file, "--stages", "cor")
    assert (wrong.code, "`cor` is not a list of stages" in wrong.err) == (2, True)
