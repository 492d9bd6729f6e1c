"""Outages of a farm, in short: `test_chaos` has more, and takes longer.

All tests share one farm, each with a project of its own.
"""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from farm.tests.chaos import (
    JOBS,
    WORKERS,
    Ordeal,
    busy_text,
    cabled,
    check_busy,
    check_once,
    fill,
    harm_often,
    long_text,
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
from farm.tests.network import Cable
from tests.support.helpers import make_project
from torchyard_farm.settings.farm import parse_farm

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(postgres_programs() is None, reason="apt-get install postgresql"),
]

PYTHONS = 3
PACKAGES = "package:*"
"""Selects a core, and two jobs for each Python."""


class Site(NamedTuple):
    farm: TrialFarm
    cables: dict[str, Cable]
    server: Postgres


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        file = make_project(folder / "project")
        farm = TrialFarm(folder / "farm", file, server.url(), WORKERS, keys="attempts = 9\n")
        yield Site(farm, stack.enter_context(cabled(farm)), server)


@pytest.fixture
def ordeal(site: Site, tmp_path: Path) -> Ordeal:
    site.farm.file = make_project(tmp_path / "project", long_text(tmp_path))
    ordeal = Ordeal(site.farm, tmp_path, site.cables)
    wait_until(ordeal.is_whole, LONG, site.farm.log)
    return ordeal


@pytest.fixture
def busy(site: Site, tmp_path: Path) -> TrialFarm:
    site.farm.file = make_project(tmp_path / "project", busy_text(tmp_path, PYTHONS))
    wait_until(lambda: site.farm.connected() == set(WORKERS), LONG, site.farm.log)
    return site.farm


def test_by_default_a_loss_is_noticed_within_a_minute() -> None:
    farm = parse_farm('file = "torchyard.toml"\n')
    assert farm.heartbeat + farm.patience <= 60


@pytest.mark.slow
def test_without_an_outage_a_plan_is_built_once_by_several_workers(
    busy: TrialFarm, tmp_path: Path
) -> None:
    begun, may = tmp_path / "done", tmp_path / "may"
    may.touch()
    broken = busy.master / "plans" / "broken.json"
    broken.parent.mkdir(exist_ok=True)
    broken.write_bytes(b"{}")  # it blocks nothing
    plan = busy.submit(PACKAGES, "-f", str(busy.file))
    wait_until(lambda: begun.exists() and begun.read_bytes().count(b"\n") > 1, LONG, busy.log)
    may.write_text("one\n" * PYTHONS, encoding="ascii")
    busy.wait_done(plan)
    broken.unlink()
    check_busy(busy, plan, tmp_path, PYTHONS, stages=2)
    builds = busy.builds()
    assert len({build["workerid"] for build in builds}) > 1
    assert {page["builderid"] for page in busy.pages()} == {one["builderid"] for one in builds}
    assert busy.submit(PACKAGES, "-f", str(busy.file)) == ""  # all is there


@pytest.mark.slow
def test_a_machine_that_dies_and_an_agent_that_is_killed_lose_nothing(ordeal: Ordeal) -> None:
    """The first one's job is restarted; the second one's continues, and is found again."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.farm.kill_machine(busy)
    ordeal.start_worker(busy)
    busy = ordeal.find(2)
    ordeal.farm.kill(busy)
    ordeal.start_worker(busy)
    ordeal.finish("a machine dies, and an agent is killed", runs=2)


@pytest.mark.slow
def test_a_machine_that_stands_still_is_noticed(ordeal: Ordeal) -> None:
    """Another machine gets its job, but its result is used when it resumes."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.farm.signal_machine(busy, signal.SIGSTOP)
    try:
        ordeal.notice()
        ordeal.goes_elsewhere()
    finally:
        ordeal.farm.signal_machine(busy, signal.SIGCONT)
    ordeal.finish("a machine stands still for a while", runs=1)


@pytest.mark.slow
def test_a_network_that_is_silent_is_noticed(ordeal: Ordeal) -> None:
    """The job continues; another machine waits for its result."""
    busy = ordeal.submit()
    ordeal.harmed()
    ordeal.cables[busy].silence()
    try:
        ordeal.notice()
        ordeal.goes_elsewhere()
        ordeal.finish("the network is silent", runs=1)
    finally:
        ordeal.cables[busy].mend()
    wait_until(ordeal.is_whole, LONG, ordeal.farm.log)


@pytest.mark.slow
def test_the_disk_of_the_store_is_full_for_a_while(ordeal: Ordeal) -> None:
    """The job is attempted so often that there are minutes to free the disk."""
    store = ordeal.farm.file.parent / ".torchyard" / "store"
    with small_disk(store):
        ordeal.submit()
        ordeal.harmed()
        filler = fill(store)
        ordeal.let_go()
        wait_until(ordeal.is_retried, LONG, ordeal.farm.log)
        filler.unlink()
        ordeal.farm.wait_done(ordeal.plan)
        check_once(ordeal.farm, ordeal.plan, JOBS)


@pytest.mark.slow
def test_postgresql_and_the_master_are_restarted_while_jobs_begin_and_end(
    busy: TrialFarm, site: Site, tmp_path: Path
) -> None:
    """Each twice; the master is killed, the second time while it starts or has just started."""
    plan = busy.submit(PACKAGES, "-f", str(busy.file))
    faults = [site.server.restart] * 2 + [busy.restart_master] * 2
    harm_often(busy, tmp_path, PYTHONS, faults)
    busy.wait_for_master()
    busy.wait_done(plan)
    check_busy(busy, plan, tmp_path, PYTHONS, stages=2)
