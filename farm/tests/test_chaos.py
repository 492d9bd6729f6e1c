"""Faults of three workers, their network, their master, its database and the store.

Each time the plan is finished, no result is lost or duplicated, and no work is repeated without
need. At the end a table shows how long it took to notice, and to finish. `test_outages` is the
quick version.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import obstore
import pytest

from farm.tests.chaos import (
    JOBS,
    TOLD,
    WORKERS,
    Ordeal,
    busy_text,
    cabled,
    check_busy,
    check_once,
    fill,
    harm_often,
    long_text,
    results_of,
    small_disk,
)
from farm.tests.farms import (
    LONG,
    Postgres,
    TrialFarm,
    postgres_programs,
    postgres_server,
    wait_until,
)
from farm.tests.test_credentials import UPLOADS
from tests.support.faults import Fault, FaultyProxy, Request, no_fault
from tests.support.helpers import CORE, make_project
from tests.support.publishing import PUBLISHES, make_publishing_project
from tests.support.services import S3Server
from torchyard.host.machine import python_name
from torchyard.publish.channel.channel import Channel
from torchyard.store.claims import DEAD

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(postgres_programs() is None, reason="apt-get install postgresql"),
]


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


@pytest.fixture
def ordeal(request: pytest.FixtureRequest, tmp_path: Path, server: Postgres) -> Iterator[Ordeal]:
    """Parametrized with whether machines have host names of their own."""
    has_hosts = getattr(request, "param", False)
    if has_hosts and os.geteuid() != 0:
        pytest.skip("only root can give each worker a name of its own")
    file = make_project(tmp_path / "project", long_text(tmp_path))
    farm = TrialFarm(tmp_path / "farm", file, server.make(), WORKERS)
    with cabled(farm, has_hosts=has_hosts) as cables:
        yield Ordeal(farm, tmp_path, cables)


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
    """Others do its job meanwhile; its own run is ended, and does no harm."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.farm.signal_machine(busy, signal.SIGSTOP)
    ordeal.notice()
    wait_until(lambda: ordeal.begun() == 2, DEAD + 60, ordeal.farm.log)
    ordeal.farm.signal_machine(busy, signal.SIGCONT)
    for name in WORKERS:
        if name != busy:
            ordeal.let_go(name)
    ordeal.farm.wait_done(ordeal.plan)
    ordeal.tell("a machine stands still and goes on")
    wait_until(lambda: ordeal.farm.at_work() == "", LONG, ordeal.farm.log)
    check_once(ordeal.farm, ordeal.plan, JOBS)
    assert ordeal.begun() == 2


@pytest.mark.parametrize("ordeal", [True], indirect=True)
def test_the_network_of_a_worker_is_silent(ordeal: Ordeal) -> None:
    """Its job continues; another machine waits for the result, longer than for a dead one."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.cables[busy].silence()
    ordeal.notice()
    wait_until(lambda: len(ordeal.farm.builds()) == 2, LONG, ordeal.farm.log)
    time.sleep(DEAD + 10)
    assert ordeal.begun() == 1
    ordeal.finish("the network of a worker is silent", runs=1)
    ordeal.cables[busy].mend()
    wait_until(lambda: busy in ordeal.farm.connected(), 120, ordeal.farm.log)


def test_the_network_forgets_a_connection(ordeal: Ordeal) -> None:
    """Neither side is notified; each detects it by itself."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.cables[busy].forget()
    ordeal.notice()
    wait_until(lambda: busy in ordeal.farm.connected(), 120, ordeal.farm.log)
    ordeal.finish("the network forgets a connection", runs=1)


def test_the_network_flaps_while_a_log_streams(ordeal: Ordeal) -> None:
    """More often than a job is attempted: no machine was lost."""
    ordeal.submit()
    ordeal.harmed()
    for _ in range(5):
        followed = len(ordeal.farm.builds())
        for cable in ordeal.cables.values():
            cable.cut()
        wait_until(lambda: len(ordeal.farm.builds()) > followed, LONG, ordeal.farm.log)  # noqa: B023
    ordeal.finish("all connections are cut five times", runs=1)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
def test_postgresql_is_restarted_while_jobs_begin_and_end(
    tmp_path: Path, server: Postgres, how: signal.Signals
) -> None:
    file = make_project(tmp_path / "project", busy_text(tmp_path, 9))
    farm = TrialFarm(tmp_path / "farm", file, server.make(), WORKERS)
    with cabled(farm):
        plan = farm.submit()
        harm_often(farm, tmp_path, 9, [partial(server.restart, how)] * 8)
        farm.wait_done(plan)
        check_busy(farm, plan, tmp_path, 9)


def test_a_job_is_cancelled_while_its_worker_is_out_of_reach(ordeal: Ordeal) -> None:
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.cables[busy].silence()
    ordeal.farm.run("cancel", ordeal.plan)
    ordeal.farm.wait_done(ordeal.plan)
    assert ordeal.find(1) == busy
    ordeal.cables[busy].mend()
    wait_until(lambda: ordeal.farm.at_work() == "", LONG, ordeal.farm.log)
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
    wait_until(lambda: ordeal.farm.buildsets()[-1]["complete"], LONG, ordeal.farm.log)
    status = ordeal.farm.run("status")
    assert "quarantined: machines were lost with it" in status
    assert CORE in status
    assert ordeal.begun() == 3
    ordeal.let_go()
    ordeal.rebuild()
    ordeal.farm.wait_done(ordeal.plan)
    ordeal.tell("a job takes three machines down, Rebuild")
    assert ordeal.begun() == 4


def test_the_disk_of_the_store_is_full_for_too_long(ordeal: Ordeal) -> None:
    """A user frees disk space, and presses Rebuild."""
    store = ordeal.farm.file.parent / ".torchyard" / "store"
    with small_disk(store):
        ordeal.submit()
        ordeal.harmed()
        filler = fill(store)
        ordeal.let_go()
        wait_until(lambda: ordeal.farm.buildsets()[-1]["complete"], LONG, ordeal.farm.log)
        assert "given up after 3 attempts" in " ".join(ordeal.farm.run("status").split())
        filler.unlink()
        ordeal.rebuild()
        ordeal.farm.wait_done(ordeal.plan)
        ordeal.tell("the store's disk is full, Rebuild")
        assert results_of(ordeal.farm) == JOBS + 1


def hang(proxy: FaultyProxy, place: str) -> threading.Event:
    """Block all writers of a path, and report when one is blocked."""
    hangs = threading.Event()

    def plan(request: Request) -> Fault:
        if request.method != "PUT" or place not in request.path:
            return Fault.NONE
        hangs.set()
        return Fault.SILENCE

    proxy.plan = plan
    return hangs


def test_the_machine_that_publishes_dies_while_it_does(
    tmp_path: Path, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once when the package is written, and once between the package and its page."""
    with ExitStack() as stack:
        s3 = stack.enter_context(S3Server(tmp_path))
        proxy = stack.enter_context(FaultyProxy(s3.endpoint))
        place = s3.place()
        text = (
            PUBLISHES.replace('"cp311", "cp312"', f'"{python_name()}"')
            .replace('url = "channel"', f'url = "{place.url}"')
            .replace("[steps]\nsmoke = []\n", '[smoke]\nlevel = "import"\n')
        )
        file = make_publishing_project(tmp_path / "project", text)
        farm = TrialFarm(tmp_path / "farm", file, server.make(), WORKERS, tables=UPLOADS)
        stack.enter_context(farm)
        farm.start_master()
        farm.start_workers()
        keys = place.behind(proxy.endpoint).environment
        farm.start_worker("uploads", "--publish", env=keys)
        plan = ""
        for where in ("/states/", "/simple/demo/"):
            hangs = hang(proxy, where)
            plan = plan or farm.submit()
            wait_until(hangs.is_set, LONG, farm.log)
            farm.kill_machine("uploads")
            proxy.plan = no_fault
            farm.start_worker("uploads", "--publish", env=keys)
        farm.wait_done(plan)
        check_once(farm, plan, 6)  # core, bindings, package, check, smoke, publish
        for name, value in place.environment.items():
            monkeypatch.setenv(name, value)
        channel = Channel.at(place.url)
        head = channel.head()
        assert len(channel.state(head, "simple/demo").entries) == len(head.log) == 1
        page = bytes(obstore.get(place.store(), "simple/demo/index.html").bytes())
        assert page.count(b"</a>") == 1
