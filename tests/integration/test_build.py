"""`torchyard build` and `status`, with real processes."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.support.forked import TORCHYARD, run_torchyard
from tests.support.helpers import WORKS, Command, make_project
from tests.support.schemas import validate
from tests.support.services import Place

from torchyard.cli.build_display import _package
from torchyard.model.event import Made
from torchyard.store.store import Store
from torchyard.store.verify import verify

pytestmark = pytest.mark.integration

PYTHONS = [f"cp{number}" for number in (310, 311, 312, 313, 314)]


def build(
    file: Path, *args: object, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    whole = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **(env or {})}
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        if env is None or name not in env:
            whole.pop(name, None)
    return run_torchyard(["build", "-f", file, *args], whole)


def events(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def outcomes(text: str) -> Counter[object]:
    return Counter(event["outcome"] for event in events(text) if event["event"] == "ended")


def test_a_plan_is_built_once_and_then_found(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    first = build(file, "-o", tmp_path / "dist")
    assert first.returncode == 0, first.stderr
    assert first.stderr.endswith(f": 10 built\ncopied 2 files to {tmp_path}/dist\n")
    assert first.stdout.count(" built ") == 2
    assert sorted(path.name for path in (tmp_path / "dist").glob("[!.]*")) == [
        "demo-1.0-cp311.whl",
        "demo-1.0-cp312.whl",
    ]
    assert verify(Store.at(str(tmp_path / ".torchyard/store"))).is_clean
    assert not list((tmp_path / ".torchyard/work").iterdir())
    again = build(file)
    assert again.returncode == 0
    assert "0 of 10 jobs to do" in again.stderr
    assert again.stdout.count(" cached ") == 2


def test_only_what_is_asked_for_is_built(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    core = build(file, "core:*", "--json")
    assert outcomes(core.stdout) == {"built": 2}
    one = build(file, "cp312", "--skip", "smoke:*", "--json")
    assert outcomes(one.stdout) == {"built": 3}
    packages = build(file, "package:*", "-o", tmp_path / "dist")
    assert "not checked or smoke tested, which is not selected" in packages.stderr


def test_the_table_has_the_digest_of_the_package_alone() -> None:
    package = Made(path="a-1-py3-none-any.whl", size=5, digest="5" * 64)
    debug = Made(path="a-1-py3-none-any-debug.zip", size=9, digest="9" * 64)
    assert _package([package, debug], 14, "") == (5, "5" * 64)
    assert _package([debug], 9, "9" * 64) == (9, "9" * 64)


def test_a_package_that_is_there_needs_no_core(tmp_path: Path) -> None:
    """Nothing is built for the sake of a result that exists already."""
    file = make_project(tmp_path)
    build(file)
    store = Store.at(str(tmp_path / ".torchyard/store"))
    for result in list(store.results()):
        if result.spec.task.stage in ("core", "bindings", "source"):
            store.objects.delete([f"results/{result.fingerprint[:2]}/{result.fingerprint}.json"])
    assert outcomes(build(file, "--json").stdout) == {}


def test_events_follow_their_schema(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    told = events(build(file, "--json").stdout)
    for event in told:
        validate(event, "events")
    assert [told[0]["event"], told[-1]["event"]] == ["began", "finished"]
    moments = [float(str(event.get("at", 0))) for event in told]
    assert moments == sorted(moments)


FAILING = WORKS.replace(
    "cat {core}/lib/core.bin >", "test {python} != cp311; cat {core}/lib/core.bin >"
)


def test_after_a_failure_nothing_more_is_begun(tmp_path: Path) -> None:
    file = make_project(tmp_path, FAILING)
    failed = build(file, "--jobs", "1", "--json")
    assert failed.returncode == 9
    told = [str(event.get("outcome", event["event"])) for event in events(failed.stdout)]
    assert set(told[told.index("failed") :]) == {"failed", "skipped", "finished"}
    assert "1 job failed" in failed.stderr
    assert "look around: torchyard shell" in failed.stderr


def test_who_keeps_going_does_all_that_can_be_done(tmp_path: Path) -> None:
    file = make_project(tmp_path, FAILING)
    failed = build(file, "--keep-going", "--json")
    assert failed.returncode == 9
    assert outcomes(failed.stdout) == {"built": 6, "failed": 1, "skipped": 3}
    mended = make_project(tmp_path / "mended", WORKS)
    assert build(mended, "--store", tmp_path / ".torchyard/store").returncode == 0


def test_a_build_in_a_service_folds_logs(tmp_path: Path) -> None:
    file = make_project(tmp_path, FAILING)
    github = build(file, "--keep-going", env={"GITHUB_ACTIONS": "true"})
    assert github.stderr.count("::group::log of ") == github.stderr.count("::endgroup::") == 7
    assert "== step 1/2: compile" in github.stderr
    gitlab = build(make_project(tmp_path / "lab"), env={"GITLAB_CI": "true"})
    assert gitlab.stderr.count("section_start:") == gitlab.stderr.count("section_end:") == 10


def test_status_tells_from_another_terminal(torchyard: Command, tmp_path: Path) -> None:
    text = WORKS.replace(
        "ls {out}/lib > {out}/listing", "echo '[7/9] Building'; sleep 300; ls > {out}/listing"
    )
    file = make_project(tmp_path, text)
    nothing = torchyard("status", "-f", file)
    assert nothing.code == 5
    running = subprocess.Popen(
        [*TORCHYARD, "build", "-f", file], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    wait_until(lambda: "7/9" in torchyard("status", "-f", file).out)
    shown = torchyard("status", "-f", file).out
    assert "1 of 10 jobs" in shown
    assert "2/2 list" in shown
    for line in torchyard("status", "-f", file, "--json").out.splitlines():
        validate(json.loads(line), "events")
    running.kill()
    running.communicate()
    assert "its process is gone" in torchyard("status", "-f", file).out
    end_jobs(tmp_path)


def end_jobs(folder: Path) -> None:
    """End the jobs of a build that was killed: they would go on, as they should."""
    for process in psutil.process_iter(["cmdline"]):
        if str(folder) in " ".join(process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def test_a_build_that_was_stopped_goes_on(tmp_path: Path) -> None:
    text = WORKS.replace(
        "ls {out}/lib >", "echo begun > {work}/../../../begun; sleep $NAP; ls {out}/lib >"
    )
    text += '\n[[override]]\nstage = "core"\npass_env = ["NAP"]\n'
    file = make_project(tmp_path, text)
    env = {**os.environ, "NAP": "600"}
    running = subprocess.Popen(
        [*TORCHYARD, "build", "-f", file], env=env, stderr=subprocess.PIPE, text=True
    )
    wait_until((tmp_path / ".torchyard/begun").exists)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "stopping; once more stops at once" in said
    assert "interrupted after" in said
    assert "the same command continues from here" in said
    assert not list(Store.at(str(tmp_path / ".torchyard/store")).objects.list("claims/"))
    rest = build(file, "--json", env={"NAP": "0"})
    assert rest.returncode == 0, rest.stderr
    assert outcomes(rest.stdout) == {"built": 9}
    assert '"compile"' not in rest.stdout, "that step was done before"


def test_a_second_interrupt_kills(tmp_path: Path) -> None:
    text = WORKS.replace(
        "ls {out}/lib > {out}/listing",
        "trap '' TERM; touch {work}/../../../begun; while :; do sleep 1; done",
    )
    file = make_project(tmp_path, text)
    patient = "from torchyard.host import process_tree\nprocess_tree.GRACE = 900.0\n"
    (tmp_path / "sitecustomize.py").write_text(patient, encoding="utf-8")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    running = subprocess.Popen(
        [*TORCHYARD, "build", "-f", file],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    wait_until((tmp_path / ".torchyard/begun").exists)
    running.send_signal(signal.SIGINT)
    for line in running.stderr:
        if "once more stops at once" in line:
            break
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=600)  # less than is given to those who do not end
    assert running.returncode == 130


def test_a_build_that_failed_can_be_stopped(tmp_path: Path) -> None:
    """One job failed, another goes on; nothing new is begun, and Ctrl-C ends that one, too."""
    wait = (
        f"test {{python}} = cp311 || {{{{ touch {tmp_path}/waits; sleep 600; }}}}; "
        f"until test -e {tmp_path}/waits; do sleep 0.1; done; false; cat {{core}}/lib/core.bin >"
    )
    text = WORKS.replace("cat {core}/lib/core.bin >", wait)
    file = make_project(tmp_path, text)
    running = subprocess.Popen(
        [*TORCHYARD, "build", "-f", file, "--slots", "2", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    for line in running.stdout:
        if '"failed"' in line:
            break
    running.send_signal(signal.SIGINT)
    rest, _ = running.communicate(timeout=120)
    assert running.returncode == 9
    assert "it was stopped" in rest


@pytest.mark.slow
def test_what_vanished_from_the_store_is_made_again(tmp_path: Path) -> None:
    """Another collection removed a core that this build counted on."""
    wait = f'run = "until test -e {tmp_path}/go; do sleep 0.1; done; cat {{core}}'
    file = make_project(tmp_path, WORKS.replace('run = "cat {core}', wait))
    build(file, "core:*")
    store = Store.at(str(tmp_path / ".torchyard/store"))
    (core,) = [r for r in store.results() if r.spec.task.stage == "core"]
    running = subprocess.Popen(
        [*TORCHYARD, "build", "-f", file, "--json", "--jobs", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    for line in running.stdout:
        if '"event":"stepping"' in line:
            break
    store.objects.delete([f"results/{core.fingerprint[:2]}/{core.fingerprint}.json"])
    (tmp_path / "go").touch()
    rest = running.stdout.read()
    assert running.wait() == 0
    counts = outcomes(rest)
    assert counts["built"] == 9
    assert counts["retry"] >= 1
    running.stdout.close()


def test_a_killed_compiler_is_retried_with_fewer_slots(tmp_path: Path) -> None:
    text = WORKS.replace(
        "ls {out}/lib > {out}/listing",
        "echo $MAKEFLAGS > {out}/listing; test -e ../../../../survives"
        " || (touch ../../../../survives; kill -9 $$)",
    )
    file = make_project(tmp_path, text)
    done = build(file, "--slots", "4", "--json")
    assert done.returncode == 0, done.stderr
    (retry,) = [event for event in events(done.stdout) if event.get("outcome") == "retry"]
    assert retry["reason"] == "memory"
    assert retry["why"] == "a compiler was killed; now with at most 2 of 4 slots"
    store = Store.at(str(tmp_path / ".torchyard/store"))
    (core,) = [result for result in store.results() if result.spec.task.stage == "core"]
    assert "slots-1-1" in core.environment["MAKEFLAGS"], "a pool of its own"


@pytest.mark.slow
def test_slots_of_a_job_that_somebody_else_did_in_the_end_are_for_all(tmp_path: Path) -> None:
    """A compiler is killed; before its job is tried again, another build has done it."""
    other = tmp_path / "other"
    dies = (
        "test -e ../../../../survives"
        f" || (touch ../../../../survives; cp -r {other}/.torchyard/store ../../../..; kill -9 $$);"
        " ls"
    )
    pools = f"ls $(dirname $(echo $MAKEFLAGS | sed s/.*fifo://)) >> {tmp_path}/pools; cat {{core}}"
    text = WORKS.replace("ls {out}/lib >", f"{dies} {{out}}/lib >").replace("cat {core}", pools)
    theirs, ours = make_project(other, text), make_project(tmp_path / "ours", text)
    (other / ".torchyard").mkdir()
    (other / ".torchyard/survives").touch()
    assert build(theirs, "core:*").returncode == 0
    done = build(ours, "bindings:*", "--slots", "4", "--jobs", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert outcomes(done.stdout) == {"retry": 1, "cached": 1, "built": 3}
    assert set((tmp_path / "pools").read_text(encoding="utf-8").split()) == {"slots"}


def test_jobs_go_on_when_the_engine_is_killed(tmp_path: Path) -> None:
    """Hours of compiling are not lost with the process that watched them."""
    wait = f"until test -e {tmp_path}/go; do sleep 0.1; done; ls {{out}}/lib"
    file = make_project(tmp_path, WORKS.replace("ls {out}/lib", wait))
    command = [*TORCHYARD, "build", "-f", str(file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if '"list"' in line:
                break
        running.kill()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as rest:
        assert rest.stdout is not None
        assert json.loads(rest.stdout.readline())["needed"] == 9
        (tmp_path / "go").touch()
        told = rest.stdout.read()
    assert rest.returncode == 0
    assert outcomes(told) == {"cached": 1, "built": 8}


def test_a_stage_that_nobody_explained_is_told_before_anything_runs(tmp_path: Path) -> None:
    file = make_project(tmp_path, WORKS.partition("[[steps.bindings]]")[0])
    failed = build(file)
    assert failed.returncode == 4
    assert "nothing says with what" in failed.stderr
    assert not (tmp_path / ".torchyard/work").exists()


@pytest.mark.slow
def test_damage_in_the_store_is_mended(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    build(file, "core:*")
    store = Store.at(str(tmp_path / ".torchyard/store"))
    (core,) = [r for r in store.results() if r.spec.task.stage == "core"]
    digest = core.tree.files[0].digest
    store.objects.write(f"blobs/{digest[:2]}/{digest}", b"rubbish")
    done = build(file, "--json")
    assert done.returncode == 0, done.stderr
    assert outcomes(done.stdout)["retry"] >= 1
    assert verify(store).is_clean


@pytest.mark.slow
def test_packages_of_one_name_are_not_delivered(tmp_path: Path) -> None:
    file = make_project(tmp_path, WORKS.replace("demo-{version}-{python}.whl", "demo.whl"))
    failed = build(file, "-o", tmp_path / "dist")
    assert failed.returncode == 5
    assert "both have a file `demo.whl`, with different content" in failed.stderr


@pytest.mark.slow
def test_packages_of_one_name_are_delivered_by_block(tmp_path: Path) -> None:
    text = WORKS.replace('blas = ["openblas"]', 'blas = ["mkl", "openblas"]')
    assert text != WORKS
    dist = tmp_path / "dist"
    done = build(make_project(tmp_path, text), "-o", dist)
    assert done.returncode == 0, done.stderr
    blocks = {path.parent.relative_to(dist).as_posix() for path in dist.rglob("*.whl")}
    assert blocks == {"linux-x86_64/cpu-mkl", "linux-x86_64/cpu-openblas"}


def test_old_builds_are_forgotten(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    builds = tmp_path / ".torchyard/builds"
    for number in range(30):
        (builds / f"20200101T0000{number:02d}-{2**22 + 1}").mkdir(parents=True)
    build(file, "source:*")
    assert len(list(builds.iterdir())) == 20


def test_a_job_whose_process_is_killed_is_begun_again(tmp_path: Path) -> None:
    text = WORKS.replace(
        "ls {out}/lib >", f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; sleep 60; }}; ls >"
    )
    file = make_project(tmp_path, text.replace("{ touch", "{{ touch").replace("; }}", "; }}}}"))
    running = subprocess.Popen(
        [*TORCHYARD, "build", "core:*", "-f", file, "--json"], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    pid = 0
    for line in running.stdout:
        event = json.loads(line)
        pid = event.get("pid", pid)
        if event.get("step") == "list":
            break
    wait_until((tmp_path / "once").exists)
    os.kill(pid, signal.SIGKILL)
    rest = running.communicate(timeout=120)[0]
    assert running.returncode == 0
    (retry,) = [event for event in events(rest) if event.get("outcome") == "retry"]
    assert retry["why"] == "its process was killed by signal 9"


def sleepers(pid: int) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.name() == "sleep":
                found.append(process)
    return found


def test_paused_compilers_go_on_when_the_engine_is_gone(tmp_path: Path) -> None:
    file = make_project(tmp_path, WORKS.replace("ls {out}/lib >", "sleep 5; ls >"))
    running = subprocess.Popen(
        [*TORCHYARD, "build", "core:*", "-f", file], stderr=subprocess.DEVNULL
    )
    wait_until(lambda: bool(sleepers(running.pid)))
    (sleeper,) = sleepers(running.pid)
    sleeper.suspend()
    running.kill()
    running.wait()
    store = Store.at(str(tmp_path / ".torchyard/store"))
    wait_until(lambda: len(list(store.fingerprints())) == 2)


def test_a_build_outlives_who_watches_it(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    running = subprocess.Popen(
        [*TORCHYARD, "build", "-f", file], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert running.stderr is not None
    running.stderr.readline()
    running.stderr.close()
    running.wait(timeout=300)
    assert len(list(Store.at(str(tmp_path / ".torchyard/store")).fingerprints())) == 10


def test_another_platform_is_not_built_here(tmp_path: Path) -> None:
    file = make_project(
        tmp_path, WORKS.replace('["linux-x86_64"]', '["linux-x86_64", "linux-aarch64"]')
    )
    refused = build(file)
    assert refused.returncode == 4
    assert "also for linux-aarch64" in refused.stderr
    assert build(file, "linux-x86_64", "source:*").returncode == 0
    assert build(file, "--any-platform", "core:*").returncode == 0


def test_packages_do_not_go_into_the_source(tmp_path: Path) -> None:
    file = make_project(tmp_path)
    refused = build(file, "-o", tmp_path / "code")
    assert refused.returncode == 2
    assert "inside the source directory" in refused.stderr


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_two_builds_of_one_plan_share_the_work(tmp_path: Path) -> None:
    """On one store, from two machines' worth of directories."""
    pythons = ", ".join(f'"{python}"' for python in PYTHONS)
    text = WORKS.replace('"cp311", "cp312"', pythons)
    text = text.replace("echo {python} >>", "sleep 0.3; echo {python} >>")
    store = tmp_path / "store"
    builds = []
    for name in ("one", "two"):
        file = make_project(tmp_path / name, text)
        command = [*TORCHYARD, "build", "-f", str(file), "--store", str(store), "--json"]
        builds.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    said = [process.communicate()[0] for process in builds]
    assert [process.returncode for process in builds] == [0, 0]
    counts = [outcomes(text) for text in said]
    assert not any(count["failed"] or count["retry"] for count in counts)
    jobs = 2 + 4 * len(PYTHONS)
    assert len(list(Store.at(str(store)).fingerprints())) == jobs
    built = sum(count["built"] for count in counts)
    assert jobs <= built <= jobs * 1.1, f"{built - jobs} of {jobs} were built twice"
    assert min(count["built"] for count in counts) > 0, "each did some of it"
    assert verify(Store.at(str(store))).is_clean


def test_a_build_on_s3(tmp_path: Path, s3_place: Place) -> None:
    file = make_project(tmp_path)
    done = build(file, "--store", s3_place.url, env=s3_place.environment)
    assert done.returncode == 0, done.stderr
    again = build(file, "--store", s3_place.url, env=s3_place.environment)
    assert again.stdout.count(" cached ") == 2
