"""A plan of many short jobs through a farm, against as many builds through Buildbot alone.

    python -m farm.benchmarks.load [--jobs 10000] [--agents 8] [--block 30] [--real]

Each side has a master, a database and workers of its own, on one machine with one PostgreSQL. They
take turns: while one works, all processes of the other are stopped, so that whatever else the
machine does hits both. In place of `torchyard`, workers have a program that does nothing, on both
sides: it is the masters that are compared. With `--real` they have the real one, and the jobs are
empty ones that do not wait for each other.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import msgspec
import psutil
import psycopg2

from benchmarks.million import tables, yard
from farm.tests.farms import postgres
from tests.services import LOOPBACK, reserved_port
from torchyard.plan.build import make_plan
from torchyard_farm.layout import make_master, secret_of
from torchyard_farm.plans import FarmPlan, Plans, farm_plan
from torchyard_farm.settings import agents_of, load_farm

ROOT = Path(__file__).resolve().parents[2]
SIDES = ("bare", "farm")
MACHINE = "w"
PLATFORM = "platform0"
PYTHONS, PACKAGES = 5, 3
PER_BLOCK = 1 + PYTHONS * (1 + 3 * PACKAGES)
"""Jobs behind one core: bindings, packages, and a check and a smoke test for each package."""

MARKS = (1_000, 5_000, 10_000)
STARTING = 120
PAUSE = 4
"""Seconds between two looks at how far a side is, and at what its web server says."""

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
heartbeat = "2 h"
patience = "1 h"

[worker.{machine}]
platform = "{platform}"
memory = "1000 GB"
disk = "1000 GB"
slots = {agents}
"""

BARE = """\
import sys
sys.path.insert(0, {root!r})
from farm.benchmarks.bare import configure
BuildmasterConfig = configure(basedir, {jobs}, {ahead}, {command!r})
"""


class Side:
    """One master and its workers; what they used is counted while it is their turn."""

    def __init__(self, name: str, folder: Path, database: str, path: str) -> None:
        self.name = name
        self.folder = folder
        self.farm = load_farm(folder)
        self._tables = psycopg2.connect(database)
        self._tables.autocommit = True
        self._environment = {**os.environ, "PATH": path}
        self._processes: list[psutil.Popen] = []
        self.seconds = self.used = 0.0
        self.done = 0
        self.memory: dict[int, int] = {}
        self._pages = PAGES | (PLAN_PAGE if name == "farm" else {})
        self.refused: list[str] = []
        self.answers: dict[str, list[float]] = {page: [] for page in self._pages}

    @property
    def master(self) -> psutil.Popen:
        return self._processes[0]

    def start(self, workers: Path) -> None:
        self._start([sys.executable, "-m", "torchyard", "farm", "start", ".", "--foreground"])
        self._wait(self._answers)
        listen = self.farm.listen
        names = agents_of(MACHINE, self.farm.machines[0].slots)
        script = str(ROOT / "farm" / "benchmarks" / "agents.py")
        agents = self._start(
            [sys.executable, script, str(workers), listen.host, str(listen.port), *names]
        )
        assert agents.stdin is not None
        agents.stdin.write(secret_of(self.folder, MACHINE).encode())
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

    @contextmanager
    def turn(self) -> Iterator[None]:
        for process in self._processes:
            process.send_signal(signal.SIGCONT)
        began, used = time.monotonic(), _cpu(self.master)
        yield
        self.pause()
        self.seconds += time.monotonic() - began
        self.used += _cpu(self.master) - used

    def browse(self) -> None:
        """Ask as a browser does."""
        for page, path in self._pages.items():
            began = time.perf_counter()
            try:
                self._ask(path)
            except urllib.error.HTTPError as error:
                self.refused.append(f"{path}: {error}")
            self.answers[page].append(time.perf_counter() - began)

    def look(self) -> None:
        """See how far it is."""
        (self.done,) = self._row("select count(*) from buildsets where complete = 1")
        for mark in MARKS:
            if self.done >= mark:
                self.memory.setdefault(mark, self.master.memory_info().rss)

    def failed(self) -> int:
        (count,) = self._row("select count(*) from builds where complete_at > 0 and results <> 0")
        return int(count)

    def _there(self) -> int:
        (count,) = self._row("select count(*) from connected_workers")
        return int(count)

    def _row(self, query: str) -> tuple[int, ...]:
        with self._tables.cursor() as cursor:
            cursor.execute(query)
            row: tuple[int, ...] = cursor.fetchone()
            return row

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

    def _wait(self, happened) -> None:
        until = time.monotonic() + STARTING
        while not happened():
            if time.monotonic() > until:
                msg = f"{self.name} does not start: {(self.folder / 'twistd.log').read_text()[-3000:]}"
                raise RuntimeError(msg)
            time.sleep(0.2)


def _cpu(process: psutil.Popen) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def big_plan(jobs: int) -> FarmPlan:
    """The first jobs of a matrix with one platform and as many blocks as it takes."""
    sizes = (1, -(-jobs // PER_BLOCK), 1, PYTHONS, PACKAGES)
    plan = make_plan(yard(sizes, rules=False), tables(sizes))
    whole = farm_plan(plan, (), name=PLAN, store="file:///nowhere")
    return msgspec.structs.replace(whole, jobs=whole.jobs[:jobs])


def make_side(
    name: str, folder: Path, server: str, args: argparse.Namespace, path: str, ports: ExitStack
) -> Side:
    connection = psycopg2.connect(server)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"create database {name}")
    connection.close()
    database = server.rpartition("/")[0] + f"/{name}"
    port, web = ports.enter_context(reserved_port()), ports.enter_context(reserved_port())
    text = FARM.format(
        database=database,
        host=LOOPBACK,
        port=port,
        web=web,
        machine=MACHINE,
        platform=PLATFORM,
        agents=args.agents,
    )
    make_master(folder, text, datetime.now(UTC))
    return Side(name, folder, database, path)


def run(args: argparse.Namespace, folder: Path) -> dict[str, Side]:
    programs = folder / "bin"
    programs.mkdir()
    (programs / "torchyard").write_text("#!/bin/sh\necho done\n", encoding="ascii")
    (programs / "torchyard").chmod(0o755)
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    with ExitStack() as stack:
        server = stack.enter_context(postgres())
        ports = stack.enter_context(ExitStack())
        sides = {}
        for name in SIDES:
            side = sides[name] = make_side(name, folder / name, server, args, path, ports)
            stack.callback(side.end)
        command = ["torchyard", "run"]
        text = BARE.format(root=str(ROOT), jobs=args.jobs, ahead=args.ahead, command=command)
        (folder / "bare" / "master.cfg").write_text(text, encoding="utf-8")
        plan = big_plan(args.jobs)
        for side in sides.values():
            side.start(folder / f"{side.name}-workers")
            side.memory[0] = side.master.memory_info().rss
            side.pause()
        Plans(folder / "farm").add(plan)
        take_turns(list(sides.values()), args.jobs, args.block)
        for side in sides.values():
            if side.failed():
                msg = f"{side.name}: {side.failed()} builds did not end well"
                raise RuntimeError(msg)
        return sides


def take_turns(sides: list[Side], jobs: int, block: float) -> None:
    """Until all is done; after SIGTERM, until this round is."""
    enough = Event()
    signal.signal(signal.SIGTERM, lambda *_: enough.set())
    while not enough.is_set() and (left := [side for side in sides if side.done < jobs]):
        for side in left:
            until = time.monotonic() + block
            with side.turn():
                while time.monotonic() < until and side.done < jobs:
                    time.sleep(PAUSE)
                    side.browse()
                    side.look()
            print(
                f"{side.name}: {side.done} in {side.seconds:.0f} s, "
                f"{side.used / max(side.done, 1) * 1e3:.0f} ms of CPU each, "
                f"{side.master.memory_info().rss >> 20} MB",
                file=sys.stderr,
                flush=True,
            )


def report(sides: dict[str, Side]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, side in sides.items():
        pages = {
            page: {
                "p50": round(statistics.median(times) * 1e3),
                "p99": round(statistics.quantiles(times, n=100)[98] * 1e3),
                "max": round(max(times) * 1e3),
            }
            for page, times in side.answers.items()
        }
        found[name] = {
            "jobs": side.done,
            "jobs_per_second": round(side.done / side.seconds, 2),
            "cpu_ms_per_job": round(side.used / side.done * 1e3, 1),
            "memory_mb": {str(mark): rss >> 20 for mark, rss in side.memory.items()},
            "answers_ms": pages,
            "refused": side.refused,
        }
    bare, farm = sides["bare"], sides["farm"]
    found["rate_to_bare"] = round((farm.done / farm.seconds) / (bare.done / bare.seconds), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--block", type=float, default=30)
    parser.add_argument("--ahead", type=int, default=32)
    args = parser.parse_args()
    with TemporaryDirectory(prefix="load-") as name:
        print(json.dumps(report(run(args, Path(name))), indent=2))


if __name__ == "__main__":
    main()
