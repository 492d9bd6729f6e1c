"""Faults that tests inject into a farm, and invariants that hold after any of them."""

import contextlib
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from farm.tests.farms import LONG, Build, TrialFarm, wait_until
from farm.tests.network import Cable
from farm.tests.web_clients import Visitor
from tests.support.helpers import WORKS
from torchyard.config.tables import load_tables
from torchyard.store.claims import DEAD
from torchyard.store.store import Store
from torchyard_farm.settings.layout import read_secret
from torchyard_farm.settings.roles import ADMIN

WORKERS = ("w1", "w2", "w3")
JOBS = 2
"""Jobs of a plan with one long job: it, and its bindings."""
_PATIENCE = 10
NOTICED = 60
"""Seconds: more than heartbeat and patience of a test farm, as machines may be busy."""

_RETRY = 5


class Told(NamedTuple):
    """How long it took to notice a fault, and to finish the plan, in seconds."""

    what: str
    noticed: float | None
    finished: float


TOLD: list[Told] = []


def long_text(marks: Path) -> str:
    """A project whose core logs its start, and waits until it may continue."""
    told = f"test -e {marks}/go -o -e {marks}/go-$(hostname)"
    wait = f"until {told}; do echo another line; sleep 1; done"
    line = f"echo begun >> {marks}/begun; {wait}; mkdir -p {{out}}/lib"
    return WORKS.replace('"cp311", "cp312"', '"cp312"').replace("mkdir -p {out}/lib", line)


PYTHONS = tuple(load_tables().pythons)


def busy_text(marks: Path, pythons: int) -> str:
    """A project with a job for each Python that logs its start, and others after it.

    The n-th that started continues when n jobs may.
    """
    names = ", ".join(f'"{python}"' for python in PYTHONS[:pythons])
    turn = f"$(grep -n -x -m 1 {{python}} {marks}/done | cut -d: -f1)"
    wait = f"until test $(wc -l < {marks}/may) -ge {turn}; do sleep 0.2; done"
    return (
        WORKS.replace('"cp311", "cp312"', names)
        .replace("cat {core}", f"echo {{python}} >> {marks}/done; {wait}; cat {{core}}")
        .replace("cp {bindings}", "sleep 1; cp {bindings}")
    )


def check_busy(farm: TrialFarm, plan: str, marks: Path, pythons: int, *, stages: int = 4) -> None:
    """Every job has its result, and none was done twice; each Python has jobs of several stages."""
    check_once(farm, plan, 1 + stages * pythons)
    done = (marks / "done").read_text(encoding="utf-8").split()
    assert sorted(done) == sorted(PYTHONS[:pythons])


def check_once(farm: TrialFarm, plan: str, jobs: int) -> None:
    """Every job of a plan was submitted once, succeeded, and has a result."""
    sent = [one for one in farm.buildsets() if one["external_idstring"].startswith(f"{plan}/")]
    assert Counter(one["external_idstring"] for one in sent) == {
        f"{plan}/{number}": 1 for number in range(jobs)
    }
    assert {one["results"] for one in sent} == {0}
    assert results_of(farm) == jobs + 1  # and the source


def results_of(farm: TrialFarm) -> int:
    """Return the number of results, whether the master runs or not."""
    return len(list(Store.at(str(farm.file.parent / ".torchyard" / "store")).fingerprints()))


def harm_often(
    farm: TrialFarm, marks: Path, pythons: int, faults: Sequence[Callable[[], None]]
) -> None:
    """Inject faults at random moments while jobs start and end, each second one shortly after.

    Then the farm is about to recover from the last fault. One more job may continue before each
    pair, but the last one only afterwards: so the plan lasts for as long as this.
    """
    chance = random.Random(len(faults))
    may = marks / "may"
    may.touch()
    for number, harm in enumerate(faults):
        if number % 2 == 0 and number // 2 < pythons - 1:
            known = results_of(farm)
            may.write_text("one\n" * (1 + number // 2), encoding="ascii")
            wait_until(lambda: results_of(farm) > known, LONG, farm.log)  # noqa: B023
        time.sleep(chance.uniform(0, 1 if number % 2 == 0 else 4))
        harm()
    may.write_text("one\n" * pythons, encoding="ascii")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system of its own at a directory, if that is permitted."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Fill a disk with a file, and return it."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"0" * 4096):
            pass
    return filler


class Ordeal:
    """A farm with three workers, each with a cable of its own, and a plan with one long job."""

    def __init__(self, farm: TrialFarm, marks: Path, cables: dict[str, Cable]) -> None:
        self.farm = farm
        self.marks = marks
        self.cables = cables
        self.plan = ""
        self._before = len(farm.builds())
        self._began = 0.0
        self._retries = 0
        self._noticed: float | None = None

    def submit(self) -> str:
        """Start the plan, and return the worker of the long job."""
        self.plan = self.farm.submit("bindings:*", "-f", str(self.farm.file))
        return self.find(1)

    def find(self, runs: int) -> str:
        """Return the machine on which the long job runs for the n-th time."""
        found: list[str] = []

        def is_found() -> bool:
            found.append(self.farm.at_work() if self.begun() == runs else "")
            return found[-1] != ""

        wait_until(is_found, LONG, self.farm.log)
        return found[-1]

    def begun(self) -> int:
        path = self.marks / "begun"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0

    def builds(self) -> list[Build]:
        """Return all attempts of this plan's jobs."""
        return self.farm.builds()[self._before :]

    def let_go(self, name: str = "") -> None:
        """Let the long job finish, everywhere or on one machine."""
        (self.marks / (f"go-{name}" if name else "go")).touch()

    def start_worker(self, name: str) -> None:
        self.farm.start_worker(name, port=self.cables[name].port)

    def harmed(self) -> None:
        """Start the clock: a fault is about to be injected into the job's machine."""
        self._retries = self._retried()
        self._began = time.monotonic()

    def notice(self) -> None:
        """Wait until the master has given up an attempt."""
        wait_until(self.is_retried, LONG, self.farm.log)
        self._noticed = time.monotonic() - self._began
        assert self._noticed <= NOTICED

    def is_retried(self) -> bool:
        return self._retried() > self._retries

    def _retried(self) -> int:
        return sum(build["results"] == _RETRY for build in self.builds())

    def goes_elsewhere(self) -> None:
        """Wait until another machine has the job."""
        wait_until(lambda: len({one["workerid"] for one in self.builds()}) > 1, LONG, self.farm.log)

    def finish(self, what: str, runs: int) -> None:
        """Let the long job finish, and the plan with it."""
        wait_until(lambda: self.begun() == runs, DEAD + LONG, self.farm.log)
        self.let_go()
        self.farm.wait_done(self.plan)
        self.tell(what)
        check_once(self.farm, self.plan, JOBS)
        assert self.begun() == runs

    def tell(self, what: str) -> None:
        TOLD.append(Told(what, self._noticed, time.monotonic() - self._began))

    def is_whole(self) -> bool:
        return self.farm.connected() == set(WORKERS)

    def rebuild(self) -> None:
        """Do what an authorised user does on the page of the last build."""
        last = self.farm.builds()[-1]["buildid"]
        with Visitor(self.farm) as administrator:
            administrator.log_in(ADMIN, read_secret(self.farm.master, ADMIN))
            assert administrator.ask_for("rebuild", f"builds/{last}") == 200


@contextlib.contextmanager
def cabled(farm: TrialFarm, *, has_hosts: bool = False) -> Iterator[dict[str, Cable]]:
    """Start a farm, each worker with a cable of its own."""
    farm.has_hosts, farm.patience = has_hosts, _PATIENCE
    with contextlib.ExitStack() as stack:
        stack.enter_context(farm)
        farm.start_master()
        cables = {name: stack.enter_context(Cable(farm.port)) for name in farm.names}
        for name in farm.names:
            farm.start_worker(name, port=cables[name].port)
        yield cables
