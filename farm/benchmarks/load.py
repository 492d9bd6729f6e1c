"""A plan of many short jobs on a farm, compared with as many builds on Buildbot alone.

    python -m farm.benchmarks.load [--jobs 10000] [--agents 16] [--block 30] [--real]

Each side has a master, a database and workers of its own, on one machine with one PostgreSQL. They
take turns: while one works, all processes of the other are stopped, so that other load of the
machine affects both. Web pages are requested at the end of a turn, while jobs run, and are not
counted. In place of `torchyard`, workers have a program that does nothing, on both sides: the
masters are compared. With `--real` they have the real one, and the jobs are empty and independent.

It fails if the farm is too slow, takes too much memory, or its web pages do not answer. After
SIGTERM it reports its progress, and fails.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import NamedTuple

import msgspec
import psutil
import sqlalchemy as sa

from benchmarks.plans import config
from farm.tests.farms import postgres
from tests.support.services import LOOPBACK, reserved_port
from torchyard.plan.build import make_plan
from torchyard_farm.master.db.connection import database_config
from torchyard_farm.scheduling.plans import FarmPlan, Plans, farm_plan
from torchyard_farm.settings.farm import load_farm, worker_names
from torchyard_farm.settings.layout import make_master, read_secret, run_buildbot

ROOT = Path(__file__).resolve().parents[2]
SIDES = ("bare", "farm")
MACHINE = "w"
PLATFORM = "linux-x86_64"
PROGRAMS = "bin"
PYTHONS, PACKAGES = 5, 3
PER_BLOCK = 1 + PYTHONS * (1 + 3 * PACKAGES)
"""Jobs behind one core: bindings, packages, and a check and a smoke test for each package."""

MARKS = (1_000, 5_000, 10_000)
SLOWEST = 0.9
LARGEST = 300 << 20
"""Minimum share of the rate of Buildbot alone, and maximum memory of the farm's master."""

STARTING = 120
PAUSE = 4
"""Seconds between two polls of a side's progress; its web server is asked once in a turn."""

PAGES = {
    "web root": "/",
    "builders": "/api/v2/builders",
    "last builds": "/api/v2/builds?order=-buildid&limit=50",
}
PLAN = "load"
PLAN_PAGE = {"plan page": f"/plugins/plans/{PLAN}"}

FARM = """\
file = "torchyard.toml"
database = "{database}"
listen = "{host}:{port}"
web = "{host}:{web}"
patience = "1 h"

[worker.{machine}]
platform = "{platform}"
memory = "1000 GB"
disk = "1000 GB"
slots = {agents}
"""

REAL = """
[project]
name = "nothing"
version = "1.0"
recipe = "extension"
[source]
path = "code"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
torch = ["torch2.8", "torch2.9", "torch2.10", "torch2.11", "torch2.12", "torch2.13", "torch2.14"]
python = ["cp310", "cp311", "cp312", "cp313", "cp313t", "cp314", "cp314t", "cp315", "cp315t"]
package = ["wheel"]
[[steps.bindings]]
run = ["true"]
"""

BARE = """\
import sys
sys.path.insert(0, {root!r})
from farm.benchmarks.bare import configure
BuildmasterConfig = configure(basedir, {jobs}, {ahead}, {command!r})
"""


class Work(NamedTuple):
    """A plan for the farm, and the command of each build for Buildbot alone."""

    plan: FarmPlan
    command: list[str]


class Side:
    """One master and its workers; their resources are counted while it is their turn."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.folder = folder
        self.farm = load_farm(folder)
        self._tables = connect(self.farm.database)
        path = os.pathsep.join((str(folder.parent / PROGRAMS), os.environ["PATH"]))
        self._environment = {**os.environ, "PATH": path}
        self._processes: list[psutil.Popen] = []
        self.seconds = self.used = 0.0
        self.done = self.counted = 0
        self.memory: dict[int, int] = {}
        self.rows, self.stored = self._kept()
        self._pages = PAGES | (PLAN_PAGE if self.name == "farm" else {})
        self.refused: list[str] = []
        self.answers: dict[str, list[float]] = {page: [] for page in self._pages}

    @property
    def master(self) -> psutil.Popen:
        return self._processes[0]

    def start(self, workers: Path) -> None:
        self._start([sys.executable, "-m", "torchyard", "farm", "start", ".", "--foreground"])
        self._wait(self._answers)
        listen = self.farm.listen
        names = worker_names(MACHINE, self.farm.machines[0].slots)
        script = str(ROOT / "farm" / "benchmarks" / "agents.py")
        agents = self._start(
            [sys.executable, script, self.name, str(workers), listen.host, str(listen.port), *names]
        )
        agents.stdin.write(read_secret(self.folder, MACHINE).encode())
        agents.stdin.close()
        self._wait(lambda: self._there() == len(names))

    def _start(self, argv: list[str]) -> psutil.Popen:
        with (self.folder / "out.txt").open("ab") as out:
            process = psutil.Popen(
                argv,
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
            )
        self._processes.append(process)
        return process

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self._tables.close()

    def pause(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGCONT)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Measure jobs, time, and the master's resources."""
        self.look()
        began, used, done = time.monotonic(), _cpu(self.master), self.done
        yield
        self.look()
        self.counted += self.done - done
        self.seconds += time.monotonic() - began
        self.used += _cpu(self.master) - used

    def browse(self) -> None:
        """Request pages as a browser does."""
        for page, path in self._pages.items():
            began = time.perf_counter()
            try:
                self._ask(path)
            except (OSError, HTTPException) as error:
                self.refused.append(f"{path}: {error}")
                if self.master.poll() is not None:
                    raise self._dead() from error
            self.answers[page].append(time.perf_counter() - began)

    def look(self) -> None:
        """Return the progress."""
        self.done = self._count("select count(*) from buildsets where complete = 1")
        for mark in MARKS:
            if self.done >= mark:
                self.memory.setdefault(mark, self.master.memory_info().rss)

    def measure_tables(self) -> None:
        """Return by how much the database grew."""
        rows, stored = self._kept()
        self.rows, self.stored = rows - self.rows, stored - self.stored

    def _kept(self) -> tuple[int, int]:
        """Return the number of written rows, and the size of the database."""
        rows = self._count("select coalesce(sum(n_tup_ins), 0) from pg_stat_user_tables")
        return rows, self._count("select pg_database_size(current_database())")

    def failed(self) -> int:
        return self._count("select count(*) from builds where complete_at > 0 and results <> 0")

    def _there(self) -> int:
        return self._count("select count(*) from connected_workers")

    def _count(self, query: str) -> int:
        return int(self._tables.execute(sa.text(query)).scalar_one())

    def _answers(self) -> bool:
        with suppress(urllib.error.URLError, ConnectionError):
            self._ask("/api/v2/masters")
            return True
        return False

    def _ask(self, path: str) -> None:
        web = self.farm.web
        url = f"http://{web.host}:{web.port}{path}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            answer.read()

    def _dead(self) -> RuntimeError:
        log = (self.folder / "twistd.log").read_text(encoding="utf-8")
        return RuntimeError(f"{self.name} does not work: {log[-3000:]}")

    def _wait(self, happened: Callable[[], bool]) -> None:
        until = time.monotonic() + STARTING
        while not happened():
            if time.monotonic() > until:
                raise self._dead()
            time.sleep(0.2)


def _cpu(process: psutil.Popen) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def connect(url: str) -> sa.Connection:
    engine = sa.create_engine(database_config(url)["db_url"], isolation_level="AUTOCOMMIT")
    return engine.connect()


def big_plan(jobs: int) -> FarmPlan:
    """Return the first jobs of a matrix with one platform and enough blocks."""
    sizes = (1, -(-jobs // PER_BLOCK), 1, PYTHONS, PACKAGES)
    plan = make_plan(config(sizes, rules=False))
    whole = farm_plan(plan, (), name=PLAN, store="file:///nowhere")
    some = (msgspec.structs.replace(job, kind=PLATFORM) for job in whole.jobs[:jobs])
    return msgspec.structs.replace(whole, jobs=tuple(some))


def hollow_work(folder: Path, jobs: int) -> Work:
    """Jobs of a program that does nothing, in place of `torchyard`."""
    program = folder / PROGRAMS / "torchyard"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho done\n", encoding="ascii")
    program.chmod(0o755)
    return Work(big_plan(jobs), ["torchyard", "run"])


def real_work(folder: Path, _jobs: int) -> Work:
    """Jobs of `torchyard` itself, which have nothing to do; each side has a store of its own."""
    project, store, specs = folder / "project", folder / "store", folder / "specs"
    (project / "code").mkdir(parents=True)
    specs.mkdir()
    (project / "torchyard.toml").write_text(REAL, encoding="utf-8")
    file = str(project / "torchyard.toml")
    submit = ["torchyard", "farm", "submit", str(folder / "farm"), "-f", file, "bindings:*"]
    done = subprocess.run(submit, check=True, capture_output=True, text=True)
    plans = Plans(folder / "farm")
    plan = msgspec.structs.replace(plans.read(done.stdout.strip()), id=PLAN)
    plans.end(done.stdout.strip())
    shutil.copytree(project / ".torchyard" / "store", store)
    for number in range(len(plan.jobs)):
        (specs / f"{number}.json").write_bytes(msgspec.json.encode(plan.spec(number)))
    command = ["torchyard", "run", "--detach", "--spec", f"{specs}/%(prop:job)s.json"]
    return Work(plan, [*command, "--work", "../../work", "--store", str(store)])


def make_side(folder: Path, server: str, agents: int, ports: ExitStack) -> Side:
    with connect(server) as connection:
        connection.execute(sa.text(f"create database {folder.name}"))
    text = FARM.format(
        database=server.rpartition("/")[0] + f"/{folder.name}",
        host=LOOPBACK,
        port=ports.enter_context(reserved_port()),
        web=ports.enter_context(reserved_port()),
        machine=MACHINE,
        platform=PLATFORM,
        agents=agents,
    )
    make_master(folder, text, datetime.now(UTC))
    run_buildbot(folder, "upgrade-master", "--quiet")
    return Side(folder)


def run(args: argparse.Namespace, folder: Path) -> int:
    """Run the benchmark, print the results, and return the number of faults."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres())
        sides = []
        for name in SIDES:
            sides.append(make_side(folder / name, server, args.agents, stack))
            stack.callback(sides[-1].end)
        work = real_work(folder, args.jobs) if args.real else hollow_work(folder, args.jobs)
        jobs = len(work.plan.jobs)
        ahead = args.ahead or 2 * args.agents
        text = BARE.format(root=str(ROOT), jobs=jobs, ahead=ahead, command=work.command)
        (folder / "bare" / "master.cfg").write_text(text, encoding="utf-8")
        for side in sides:
            side.start(folder / f"{side.name}-workers")
            side.memory[0] = side.master.memory_info().rss
            side.pause()
        Plans(folder / "farm").add(work.plan)
        take_turns(sides, jobs, args.block)
        for side in sides:
            side.measure_tables()
            if side.failed():
                msg = f"{side.name}: {side.failed()} builds did not end well"
                raise RuntimeError(msg)
        print(json.dumps(report(sides), indent=2))
        found = list(faults(sides, jobs))
        for fault in found:
            print(fault, file=sys.stderr)
        return len(found)


def take_turns(sides: list[Side], jobs: int, block: float) -> None:
    """Run until all is done; after SIGTERM, until this round is."""
    enough = Event()
    signal.signal(signal.SIGTERM, lambda *_: enough.set())
    while not enough.is_set() and (left := [side for side in sides if side.done < jobs]):
        for side in left:
            until = time.monotonic() + block
            side.go_on()
            with side.counting():
                while time.monotonic() < until and side.done < jobs:
                    time.sleep(PAUSE)
                    side.look()
            side.browse()
            side.pause()
            print(
                f"{side.name}: {side.done} done, {side.counted} in {side.seconds:.0f} s, "
                f"{side.used / max(side.counted, 1) * 1e3:.0f} ms of CPU each, "
                f"{side.master.memory_info().rss >> 20} MB",
                file=sys.stderr,
                flush=True,
            )


def report(sides: list[Side]) -> dict[str, object]:
    return {**{side.name: figures(side) for side in sides}, "rate_to_bare": round(rate(sides), 3)}


def rate(sides: list[Side]) -> float:
    bare, farm = (side.counted / side.seconds for side in sides)
    return farm / bare


def faults(sides: list[Side], jobs: int) -> Iterator[str]:
    """Return the limits that were exceeded."""
    bare, farm = sides
    for side in sides:
        if side.done < jobs:
            yield f"{side.name}: only {side.done} of {jobs} jobs were done"
    if rate(sides) < SLOWEST:
        yield f"the farm has {rate(sides):.3f} of the rate of Buildbot alone: below {SLOWEST}"
    if (most := max(farm.memory.values())) > LARGEST:
        yield f"the farm's master takes {most >> 20} MB: more than {LARGEST >> 20}"
    yield from (f"not answered: {path}" for path in (*bare.refused, *farm.refused))


def figures(side: Side) -> dict[str, object]:
    return {
        "jobs": side.done,
        "jobs_per_second": round(side.counted / side.seconds, 2),
        "cpu_ms_per_job": round(side.used / side.counted * 1e3, 1),
        "rows_per_job": round(side.rows / side.done, 1),
        "bytes_per_job": side.stored // side.done,
        "memory_mb": {str(mark): rss >> 20 for mark, rss in side.memory.items()},
        "answers_ms": {
            page: {
                "p50": round(statistics.median(times) * 1e3),
                "p99": round(statistics.quantiles(times, n=100, method="inclusive")[98] * 1e3),
                "max": round(max(times) * 1e3),
            }
            for page, times in side.answers.items()
        },
        "refused": side.refused,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--block", type=float, default=30)
    parser.add_argument("--ahead", type=int, help="builds that wait or run on the bare side")
    parser.add_argument("--real", action="store_true")
    args = parser.parse_args()
    with TemporaryDirectory(prefix="load-") as name:
        sys.exit(1 if run(args, Path(name)) else 0)


if __name__ == "__main__":
    main()
