"""Several masters on one database."""

import shutil
import signal
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest

from farm.tests.backdating import backdate
from farm.tests.farms import LONG, TrialFarm, postgres, postgres_programs, wait_until
from farm.tests.network import Cable
from farm.tests.test_faults import begun, long_core, sleeper
from tests.support.helpers import WORKS, make_project
from tests.support.services import LOOPBACK, reserved_port
from torchyard_farm.scheduling.plans import Plans

pytestmark = pytest.mark.integration

NAMES = ("w1", "w2")
MANY = WORKS.replace("cat {core}", "sleep 2; cat {core}").replace(
    '"cp311", "cp312"', '"cp310", "cp311", "cp312", "cp313"'
)


class Master(TrialFarm):
    def has_worker(self) -> bool:
        return self.has_said("Got workerinfo")


class SecondMaster(Master):
    """A second master: its own directory and ports, the same machines and passwords."""

    def __init__(self, first: TrialFarm) -> None:
        super().__init__(first.folder / "second", first.file, "", first.names, first.slots)
        self._first = first

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.port = stack.enter_context(reserved_port())
            self.web = stack.enter_context(reserved_port())
            self.master.mkdir(mode=0o700, parents=True)
            shutil.copytree(self._first.master / "secrets", self.master / "secrets")
            text = (self._first.master / "farm.toml").read_text(encoding="utf-8")
            text = text.replace(f":{self._first.port}", f":{self.port}")
            text = text.replace(f":{self._first.web}", f":{self.web}")
            (self.master / "farm.toml").write_text(text, encoding="utf-8")
            self.create_master()
            stack.callback(self._end_all)
            self._stack = stack.pop_all()
        return self


def start(
    stack: ExitStack, folder: Path, text: str, slots: int = 1, more: str = ""
) -> tuple[Master, SecondMaster]:
    """Two masters; each is the first choice of one of two machines."""
    if postgres_programs() is None:
        pytest.skip("there is no PostgreSQL: apt-get install postgresql")
    database = stack.enter_context(postgres())
    file = make_project(folder / "project", text)
    first = Master(folder / "farm", file, database, NAMES, slots)
    stack.enter_context(first)
    toml = first.master / "farm.toml"
    written = toml.read_text(encoding="utf-8")
    toml.write_text(f"shared = true\n{written}{more}", encoding="utf-8")
    second = stack.enter_context(SecondMaster(first))
    for farm in (first, second):
        farm.start_master()
        wait_until(lambda: farm.has_said("BuildMaster is running"), LONG, farm.log)  # noqa: B023
    first.start_worker("w1", "--master", f"{LOOPBACK}:{second.port}")
    second.start_worker("w2", "--master", f"{LOOPBACK}:{first.port}")
    for farm in (first, second):
        wait_until(farm.has_worker, LONG, farm.log)
    return first, second


def test_a_worker_that_came_long_ago_is_there(tmp_path: Path) -> None:
    master = Master(tmp_path, tmp_path / "torchyard.toml", "", NAMES)
    master.master.mkdir()
    said = ["Got workerinfo from 'w1'", *("something else" for _ in range(1000))]
    (master.master / "twistd.log").write_text("\n".join(said), encoding="utf-8")
    assert master.has_worker()


@pytest.mark.slow
def test_a_plan_is_built_by_the_workers_of_two_masters(stack: ExitStack, tmp_path: Path) -> None:
    first, second = start(stack, tmp_path, MANY)
    plan = second.submit()  # the first one schedules plans
    first.wait_done(plan)
    second.wait_done(plan)
    assert len({build["workerid"] for build in first.builds()}) == 2
    assert len(first.buildsets()) == 17
    assert {one["results"] for one in first.buildsets()} == {0}


@pytest.mark.slow
def test_another_master_takes_over_for_good(stack: ExitStack, tmp_path: Path) -> None:
    wait = f"until test -e {tmp_path}/go; do sleep 0.2; done"
    first, second = start(stack, tmp_path, WORKS.replace("cat {core}", f"{wait}; cat {{core}}"))
    plan = first.submit("bindings:*")
    wait_until(lambda: any(one["complete"] for one in first.buildsets()), LONG, first.log)
    first.kill("master")
    (tmp_path / "go").touch()
    assert not second.is_done(plan)
    second.wait_done(plan)
    assert {one["results"] for one in second.buildsets()} == {0}
    assert len(second.buildsets()) == 3  # each job was submitted once


@pytest.mark.slow
def test_a_job_outlives_its_master_and_is_found_by_another(
    stack: ExitStack, tmp_path: Path
) -> None:
    first, second = start(stack, tmp_path, long_core(tmp_path, 45))
    plan = first.submit()
    wait_until(lambda: begun(tmp_path) == 1 and bool(sleeper(tmp_path)), LONG, first.log)
    busy = first if sleeper(first.folder / "w1") else second
    other = second if busy is first else first
    busy.kill("master")
    other.wait_done(plan)
    assert begun(tmp_path) == 1


@pytest.mark.slow
def test_a_machine_that_goes_to_another_master_is_back_with_its_job(
    stack: ExitStack, tmp_path: Path
) -> None:
    """Only the connection to the first master is cut: the job did no harm."""
    wait = f"until test -e {tmp_path}/go; do sleep 1; done"
    text = long_core(tmp_path, 0).replace("sleep 0", wait)
    first, second = start(stack, tmp_path, text)
    cable = stack.enter_context(Cable(first.port))
    second.kill("w2")
    first.kill("w1")
    first.start_worker("w1", "--master", f"{LOOPBACK}:{second.port}", port=cable.port)
    plan = first.submit()
    wait_until(lambda: begun(tmp_path) == 1, 120, first.log)
    cable.silence()
    cable.cut()
    wait_until(lambda: second.has_said("w1 is back with the job of build"), 180, second.log)
    (tmp_path / "go").touch()
    second.wait_done(plan)
    assert begun(tmp_path) == 1
    builds = second._ask("builds?property=verdict")["builds"]
    told = [build["properties"].get("verdict") for build in builds]  # type: ignore[index]
    assert ["cut", "run"] in told
    assert "lost" not in str(told)


@pytest.mark.slow
def test_a_plan_can_be_cancelled_at_any_master(stack: ExitStack, tmp_path: Path) -> None:
    first, second = start(stack, tmp_path, long_core(tmp_path, 3000))
    plan = first.submit()
    wait_until(lambda: begun(tmp_path) == 1 and bool(sleeper(tmp_path)), LONG, first.log)
    wait_until((second.master / "plans" / f"{plan}.json").exists, LONG, second.log)
    second.run("cancel", plan)
    wait_until(lambda: not sleeper(tmp_path), LONG, first.log)
    first.wait_done(plan)
    second.wait_done(plan)


@pytest.mark.slow
def test_a_master_that_slept_decides_nothing(stack: ExitStack, tmp_path: Path) -> None:
    first, second = start(stack, tmp_path, MANY)
    plan = first.submit()
    wait_until(lambda: sum(one["complete"] for one in first.buildsets()) >= 2, LONG, first.log)
    first.signal("master", signal.SIGSTOP)
    wait_until(lambda: second.has_said("this one takes over"), LONG, second.log)
    first.signal("master", signal.SIGCONT)
    wait_until(lambda: first.has_said("consider this one dead"), LONG, first.log)
    second.wait_done(plan)
    assert len(second.buildsets()) == 17
    assert {one["results"] for one in second.buildsets()} == {0}


@pytest.mark.slow
def test_one_of_two_masters_does_what_is_due(stack: ExitStack, tmp_path: Path) -> None:
    at = datetime.now(UTC) - timedelta(minutes=2)
    text = f'[nightly.main]\nat = "{at:%H:%M}"\n'
    masters = start(stack, tmp_path, WORKS, more=text)
    first, second = masters
    for farm in masters:
        farm.kill("master")
    backdate(first._database, "main")
    for farm in masters:
        farm.start_master(wait=False)
    for farm in masters:
        farm.wait_for_master()
    wait_until(lambda: bool(planned(first)), 120, first.log)
    (plan,) = planned(first)
    for farm in masters:
        farm.wait_done(plan)
    runs = [one for one in second.buildsets() if one["external_idstring"].startswith("calendar:")]
    assert len(runs) == len(planned(second)) == 1


def planned(farm: TrialFarm) -> list[str]:
    return Plans(farm.master).of("main")
