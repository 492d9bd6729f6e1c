"""Lost workers, restarted masters and cancelled plans."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from farm.tests.farms import LONG, TrialFarm, wait_until
from tests.support.helpers import WORKS, make_project
from torchyard.store.store import Store

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CORE = "core:demo-1.0/linux-x86_64/cpu-openblas"
_ONE = WORKS.replace('"cp311", "cp312"', '"cp312"')


def long_core(folder: Path, seconds: int) -> str:
    """A project whose core logs its start, and is slow."""
    line = f"echo begun >> {folder}/begun; sleep {seconds}; mkdir -p {{out}}/lib"
    return _ONE.replace("mkdir -p {out}/lib", line)


def begun(folder: Path) -> int:
    path = folder / "begun"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def start(
    stack: ExitStack,
    folder: Path,
    text: str,
    names: tuple[str, ...],
    slots: int = 1,
    *,
    patience: int = 60,
) -> TrialFarm:
    file = make_project(folder / "project", text)
    farm = TrialFarm(folder / "farm", file, "sqlite:///state.sqlite", names, slots)
    farm.patience = patience
    stack.enter_context(farm)
    farm.start_master()
    farm.start_workers()
    return farm


def sleeper(folder: Path) -> list[psutil.Process]:
    """Return the processes of jobs below a directory."""
    return [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] == "sleep" and str(process.info["cwd"]).startswith(str(folder))
    ]


def test_a_killed_master_interrupts_no_job(stack: ExitStack, tmp_path: Path) -> None:
    farm = start(stack, tmp_path, long_core(tmp_path, 8), ("w1", "w2"))
    plan = farm.submit()
    wait_until(lambda: begun(tmp_path) == 1, LONG, farm.log)
    farm.kill("master")
    farm.start_master()
    farm.wait_done(plan)
    assert begun(tmp_path) == 1


def test_a_master_that_is_stopped_cancels_nothing(stack: ExitStack, tmp_path: Path) -> None:
    farm = start(stack, tmp_path, long_core(tmp_path, 8), ("w1",))
    plan = farm.submit()
    wait_until(lambda: begun(tmp_path) == 1, LONG, farm.log)
    assert farm.stop("master") == 0
    farm.start_master()
    farm.wait_done(plan)
    assert begun(tmp_path) == 1
    assert {one["results"] for one in farm.buildsets()} == {0}


def test_the_work_of_a_killed_agent_is_not_lost(stack: ExitStack, tmp_path: Path) -> None:
    farm = start(stack, tmp_path, long_core(tmp_path, 6), ("w1", "w2"))
    plan = farm.submit()
    wait_until(lambda: begun(tmp_path) == 1, LONG, farm.log)
    busy = "w1" if sleeper(tmp_path / "farm" / "w1") else "w2"
    farm.kill(busy)  # the job continues: the next machine waits for its result
    farm.wait_done(plan)
    assert begun(tmp_path) == 1


def test_a_worker_that_hangs_is_noticed(stack: ExitStack, tmp_path: Path) -> None:
    farm = start(stack, tmp_path, long_core(tmp_path, 4), ("w1", "w2"), patience=3)
    plan = farm.submit()
    wait_until(lambda: begun(tmp_path) == 1, LONG, farm.log)
    busy = "w1" if sleeper(tmp_path / "farm" / "w1") else "w2"
    farm.signal(busy, signal.SIGSTOP)
    began = time.monotonic()
    wait_until(lambda: farm.has_said(f"worker {busy} gives no sign of life"), 15, farm.log)
    print(f"noticed after {time.monotonic() - began:.1f} s")
    farm.wait_done(plan)


def test_a_job_that_is_never_at_fault_is_given_up_in_the_end(
    stack: ExitStack, tmp_path: Path
) -> None:
    text = _ONE.replace("mkdir -p {out}/lib", f"echo begun >> {tmp_path}/begun; kill -9 $PPID; #")
    farm = start(stack, tmp_path, text, ("w1", "w2"))
    farm.submit()
    wait_until(lambda: any(one["complete"] for one in farm.buildsets()), LONG, farm.log)
    (only,) = farm.buildsets()
    assert only["results"] == 2
    assert len(farm.builds()) == begun(tmp_path) == 3
    assert len({build["workerid"] for build in farm.builds()[:2]}) == 2  # elsewhere at first
    told = (farm.read(f"builds/{build['buildid']}/properties") for build in farm.builds())
    assert ["attempt" in one for one in told] == [False, True, True]
    status = farm.run("status")
    assert "given up" in status
    assert CORE in status


def test_a_cancelled_plan_ends_its_jobs_and_makes_room(stack: ExitStack, tmp_path: Path) -> None:
    farm = start(stack, tmp_path, long_core(tmp_path, 3000), ("w1",))
    plan = farm.submit()
    wait_until(lambda: begun(tmp_path) == 1 and bool(sleeper(tmp_path)), LONG, farm.log)
    farm.run("cancel", plan)
    wait_until(lambda: not sleeper(tmp_path), LONG, farm.log)
    farm.wait_done(plan)
    store = Store.at(str(farm.file.parent / ".torchyard" / "store"))
    assert len(list(store.fingerprints())) == 1  # the source
    text = farm.file.read_text(encoding="utf-8").replace("sleep 3000", "sleep 0")
    farm.file.write_text(text, encoding="utf-8")
    farm.wait_done(farm.submit())


@pytest.mark.parametrize(("memory", "together"), [("3 GB", 2), ("5 GB", 1)])
def test_memory_is_booked(stack: ExitStack, tmp_path: Path, memory: str, together: int) -> None:
    """A machine of 8 GB with two slots runs two jobs at once only if both fit."""
    marks = tmp_path / "marks"
    line = f"echo + >> {marks}; sleep 3; echo - >> {marks}; cat {{core}}"
    text = WORKS.replace("cat {core}", line) + f'[requirements.bindings]\nmemory = "{memory}"\n'
    farm = start(stack, tmp_path, text, ("w1",), slots=2)
    farm.wait_done(farm.submit())
    running = [0]
    for sign in marks.read_text(encoding="utf-8").split():
        running.append(running[-1] + (1 if sign == "+" else -1))
    assert max(running) == together


def test_a_plan_that_no_machine_can_build_is_refused(stack: ExitStack, tmp_path: Path) -> None:
    text = WORKS + '[requirements.core]\nmemory = "64 GB"\ncapabilities = ["cuda"]\n'
    file = make_project(tmp_path / "project", text)
    farm = TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",))
    stack.enter_context(farm)
    with pytest.raises(AssertionError, match="no machine of the farm"):
        farm.submit()
    assert not (file.parent / ".torchyard" / "work").exists()
