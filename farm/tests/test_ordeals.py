"""Whatever happens to three workers, their network, their master, its database and the store.

Each time the plan is finished, no result is lost or there twice, and no work is done twice that
need not be. At the end a table tells how long it took to notice, and to finish.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.tests.cables import Cable
from farm.tests.farms import (
    Postgres,
    TrialFarm,
    postgres_programs,
    postgres_server,
    wait_until,
)
from farm.tests.test_farm import check_once
from farm.tests.visitors import Visitor
from tests.helpers import WORKS, make_yard
from torchyard.store.claims import DEAD
from torchyard.store.store import Store
from torchyard_farm.settings.farm import parse_farm
from torchyard_farm.settings.layout import secret_of
from torchyard_farm.settings.roles import ADMIN

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(postgres_programs() is None, reason="apt-get install postgresql"),
]

WORKERS = ("w1", "w2", "w3")
CORE = "core:demo-1.0/linux-x86_64/cpu-openblas"
JOBS = 5
NOTICED = 2 + 3 + 15
"""Seconds: the heartbeat and the patience of a trial, and what a busy machine may take."""

LONG = 180
"""Seconds that a plan may take on a machine that has much else to do."""

TOLD: list[tuple[str, float | None, float]] = []


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    manager = request.config.pluginmanager.getplugin("capturemanager")
    with manager.global_and_fixture_disabled():
        print(f"\n{'what was done':<52} {'noticed after':>13} {'finished after':>14}")
        for what, noticed, finished in TOLD:
            told = "" if noticed is None else f"{noticed:.1f} s"
            print(f"{what:<52} {told:>13} {f'{finished:.1f} s':>14}")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


class Ordeal:
    """A farm with three workers, each with a cable of its own, and a plan with one long job."""

    def __init__(self, farm: TrialFarm, marks: Path, cables: dict[str, Cable]) -> None:
        self.farm = farm
        self.marks = marks
        self.cables = cables
        self.plan = ""
        self._began = 0.0
        self._noticed: float | None = None

    def submit(self) -> str:
        """Begin the plan; tells which worker has got the long job."""
        self.plan = self.farm.submit()
        return self.find(1)

    def find(self, runs: int) -> str:
        """The machine on which the long job runs for the n-th time."""
        found: list[str] = []

        def is_found() -> bool:
            found.append(self.farm.at_work() if self.begun() == runs else "")
            return found[-1] != ""

        wait_until(is_found, 60, self.farm.log)
        return found[-1]

    def begun(self) -> int:
        path = self.marks / "begun"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0

    def let_go(self, name: str = "") -> None:
        """Let the long job end, everywhere or on one machine."""
        (self.marks / (f"go-{name}" if name else "go")).touch()

    def start_worker(self, name: str) -> None:
        self.farm.start_worker(name, port=self.cables[name].port)

    def harmed(self) -> None:
        self._began = time.monotonic()

    def notice(self) -> None:
        """Wait until the master has given up a try."""
        wait_until(self.is_retried, 120, self.farm.log)
        self._noticed = time.monotonic() - self._began
        assert self._noticed <= NOTICED

    def is_retried(self) -> bool:
        return any(build["results"] == 5 for build in self.farm.builds())

    def finish(self, what: str, runs: int) -> None:
        """Let the long job end, and the plan with it."""
        wait_until(lambda: self.begun() == runs, DEAD + 60, self.farm.log)
        self.let_go()
        self.farm.wait_done(self.plan, LONG)
        self.tell(what)
        check_once(self.farm, self.plan, JOBS)
        assert self.begun() == runs

    def tell(self, what: str) -> None:
        TOLD.append((what, self._noticed, time.monotonic() - self._began))

    def rebuild(self) -> None:
        """What an authorised person does on the page of the last build."""
        last = self.farm.builds()[-1]["buildid"]
        with Visitor(self.farm) as administrator:
            administrator.log_in(ADMIN, secret_of(self.farm.master, ADMIN))
            assert administrator.ask_for("rebuild", f"builds/{last}") == 200


@pytest.fixture
def ordeal(request: pytest.FixtureRequest, tmp_path: Path, server: Postgres) -> Iterator[Ordeal]:
    """Parametrized with whether machines have names of their own, as others' have."""
    has_hosts = getattr(request, "param", False)
    if has_hosts and os.geteuid() != 0:
        pytest.skip("only root can give each worker a name of its own")
    told = f"test -e {tmp_path}/go -o -e {tmp_path}/go-$(hostname)"
    wait = f"until {told}; do echo another line; sleep 1; done"
    line = f"echo begun >> {tmp_path}/begun; {wait}; mkdir -p {{out}}/lib"
    text = WORKS.replace('"cp311", "cp312"', '"cp312"').replace("mkdir -p {out}/lib", line)
    with contextlib.ExitStack() as stack:
        database = server.make(f"d{os.getpid()}_{time.monotonic_ns()}")
        file = make_yard(tmp_path / "project", text)
        farm = stack.enter_context(TrialFarm(tmp_path / "farm", file, database, WORKERS))
        farm.has_hosts = has_hosts
        farm.start_master()
        cables = {name: stack.enter_context(Cable(farm.port)) for name in WORKERS}
        ordeal = Ordeal(farm, tmp_path, cables)
        for name in WORKERS:
            ordeal.start_worker(name)
        yield ordeal


def test_by_default_a_loss_is_noticed_within_a_minute() -> None:
    farm = parse_farm('file = "torchyard.toml"\n')
    assert farm.heartbeat + farm.patience <= 60


def test_an_agent_is_killed(ordeal: Ordeal) -> None:
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.farm.kill(busy)
    ordeal.notice()
    ordeal.finish("an agent is killed", runs=1)


def test_an_agent_is_killed_and_started_again(ordeal: Ordeal) -> None:
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.farm.kill(busy)
    ordeal.start_worker(busy)
    ordeal.notice()
    ordeal.finish("an agent is killed and started again", runs=1)


@pytest.mark.parametrize("ordeal", [True], indirect=True)
def test_a_machine_dies(ordeal: Ordeal) -> None:
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.farm.kill_machine(busy)
    ordeal.notice()
    ordeal.finish("a machine dies", runs=2)


@pytest.mark.parametrize("ordeal", [True], indirect=True)
def test_a_machine_stands_still_and_goes_on(ordeal: Ordeal) -> None:
    """Others do its job meanwhile; what it still does is ended, and spoils nothing."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.farm.signal_machine(busy, signal.SIGSTOP)
    ordeal.notice()
    wait_until(lambda: ordeal.begun() == 2, DEAD + 60, ordeal.farm.log)
    ordeal.farm.signal_machine(busy, signal.SIGCONT)
    for name in WORKERS:
        if name != busy:
            ordeal.let_go(name)
    ordeal.farm.wait_done(ordeal.plan, LONG)
    ordeal.tell("a machine stands still and goes on")
    wait_until(lambda: ordeal.farm.at_work() == "", 60, ordeal.farm.log)
    check_once(ordeal.farm, ordeal.plan, JOBS)
    assert ordeal.begun() == 2


@pytest.mark.parametrize("ordeal", [True], indirect=True)
def test_the_network_of_a_worker_is_silent(ordeal: Ordeal) -> None:
    """Its job goes on; another machine waits for the result, longer than for a dead one."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.cables[busy].silence()
    ordeal.notice()
    wait_until(lambda: len(ordeal.farm.builds()) == 2, 60, ordeal.farm.log)
    time.sleep(DEAD + 10)
    assert ordeal.begun() == 1
    ordeal.finish("the network of a worker is silent", runs=1)
    ordeal.cables[busy].mend()
    wait_until(lambda: busy in ordeal.farm.connected(), 120, ordeal.farm.log)


def test_the_network_forgets_a_connection(ordeal: Ordeal) -> None:
    """Neither side hears of it; each makes sure of the other."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.cables[busy].forget()
    ordeal.notice()
    wait_until(lambda: busy in ordeal.farm.connected(), 120, ordeal.farm.log)
    ordeal.finish("the network forgets a connection", runs=1)


def test_the_network_flaps_while_a_log_streams(ordeal: Ordeal) -> None:
    """More often than a job is tried: no machine was taken down."""
    ordeal.submit()
    ordeal.harmed()
    for _ in range(5):
        followed = len(ordeal.farm.builds())
        for cable in ordeal.cables.values():
            cable.cut()
        wait_until(lambda: len(ordeal.farm.builds()) > followed, 60, ordeal.farm.log)  # noqa: B023
    ordeal.finish("all connections are cut five times", runs=1)


@pytest.mark.parametrize(("how", "name"), [(signal.SIGINT, "fast"), (signal.SIGQUIT, "immediate")])
def test_postgresql_is_restarted(
    ordeal: Ordeal, server: Postgres, how: signal.Signals, name: str
) -> None:
    ordeal.submit()
    ordeal.harmed()
    for _ in range(2):
        server.stop(how)
        time.sleep(2)
        server.start()
        time.sleep(2)
    ordeal.finish(f"PostgreSQL is restarted twice, {name} mode", runs=1)


def test_a_job_is_cancelled_while_its_worker_is_out_of_reach(ordeal: Ordeal) -> None:
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.cables[busy].silence()
    ordeal.farm.run("cancel", ordeal.plan)
    ordeal.farm.wait_done(ordeal.plan, 60)
    assert ordeal.find(1) == busy
    ordeal.cables[busy].mend()
    wait_until(lambda: ordeal.farm.at_work() == "", 60, ordeal.farm.log)
    ordeal.tell("a lost job is cancelled")
    assert {one["results"] for one in ordeal.farm.buildsets()} == {6}
    assert ordeal.begun() == 1


def test_a_job_that_takes_three_machines_down_is_quarantined(ordeal: Ordeal) -> None:
    busy = ordeal.submit()
    ordeal.harmed()
    for runs in (2, 3):
        ordeal.farm.kill_machine(busy)
        ordeal.start_worker(busy)
        busy = ordeal.find(runs)
    ordeal.farm.kill_machine(busy)
    ordeal.start_worker(busy)
    wait_until(lambda: ordeal.farm.buildsets()[-1]["complete"], 90, ordeal.farm.log)
    status = ordeal.farm.run("status")
    assert "quarantined: machines were lost with it" in status
    assert CORE in status
    assert ordeal.begun() == 3
    ordeal.let_go()
    ordeal.rebuild()
    ordeal.farm.wait_done(ordeal.plan, LONG)
    ordeal.tell("a job takes three machines down, Rebuild")
    assert ordeal.begun() == 4


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of its own for a directory, if we may."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("is_in_time", [True, False])
def test_the_disk_of_the_store_is_full(ordeal: Ordeal, is_in_time: bool) -> None:
    """If there is room again in time, the plan goes on by itself; else somebody presses Rebuild."""
    store = ordeal.farm.file.parent / ".torchyard" / "store"
    with small_disk(store):
        ordeal.submit()
        ordeal.harmed()
        filler = store / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"0" * 4096):
                pass
        ordeal.let_go()
        if is_in_time:
            wait_until(ordeal.is_retried, LONG, ordeal.farm.log)
            filler.unlink()
        else:
            wait_until(lambda: ordeal.farm.buildsets()[-1]["complete"], LONG, ordeal.farm.log)
            assert "given up after 3 tries" in " ".join(ordeal.farm.run("status").split())
            filler.unlink()
            ordeal.rebuild()
        ordeal.farm.wait_done(ordeal.plan, LONG)
        ordeal.tell("the store's disk is full" + (", for a while" if is_in_time else ", Rebuild"))
        assert len(list(Store.at(str(store)).fingerprints())) == JOBS + 1
