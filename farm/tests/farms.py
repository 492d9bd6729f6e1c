"""A real farm: a master, workers and databases, each in its own process."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGSTOP, Signals
from typing import Self, TypedDict

import psutil

from farm.tests.tables import create_tables
from tests.support.forked import run_torchyard
from tests.support.services import LOOPBACK, reserved_port
from torchyard_farm.master.db.connection import database_config
from torchyard_farm.settings.layout import make_master

_STARTING = 240
LONG = 600
"""Seconds that anything may take on a busy machine."""
_WORKER = """
[worker.{name}]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
slots = {slots}
"""


class Buildset(TypedDict):
    bsid: int
    external_idstring: str
    complete: bool
    results: int | None


class Build(TypedDict):
    buildid: int
    builderid: int
    buildrequestid: int
    workerid: int
    complete_at: int
    results: int | None
    complete: bool


class Builder(TypedDict):
    builderid: int
    name: str
    tags: list[str]


class Agent(TypedDict):
    workerid: int
    name: str
    connected_to: list[object]


class TrialFarm:
    """One master and its workers, for the project of a file."""

    def __init__(
        self,
        folder: Path,
        file: Path,
        database: str,
        names: tuple[str, ...],
        slots: int = 1,
        *,
        keys: str = "",
        tables: str = "",
        by_command: bool = False,
    ) -> None:
        """Prepare a farm; `by_command` creates its master with `farm init`: 3 CPU seconds more."""
        self.folder = folder
        self.master = folder / "master"
        self.file = file
        self.names = names
        self.slots = slots
        self.has_hosts = False
        """Whether each worker has a host name of its own; only root can arrange that."""
        self.patience = 60
        """Seconds: a slow process must not count as dead, unless a test is about that."""
        self._keys, self._tables, self._by_command = keys, tables, by_command
        self._database = database
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = contextlib.ExitStack()
        self.web = self.port = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.port = stack.enter_context(reserved_port())
            self.web = stack.enter_context(reserved_port())
            self.master.mkdir(mode=0o700, parents=True)
            text = f'file = "{self.file}"\ndatabase = "{self._database}"\n'
            text += f'listen = "{LOOPBACK}:{self.port}"\nweb = "{LOOPBACK}:{self.web}"\n'
            text += f'heartbeat = "2 s"\npatience = "{self.patience} s"\npause = "1 s"\n'
            text += self._keys
            text += "".join(_WORKER.format(name=name, slots=self.slots) for name in self.names)
            text += self._tables
            (self.master / "farm.toml").write_text(text, encoding="utf-8")
            self.create_master()
            stack.callback(self._end_all)
            self._stack = stack.pop_all()
        return self

    def create_master(self) -> None:
        """Create what a master needs beside its farm.toml."""
        if self._by_command:
            self.run("init", "-f", str(self.file))
            return
        farm = make_master(self.master, "", datetime.now(UTC))
        url = farm.database.replace(":///", f":///{self.master}/")  # only SQLite's has no host
        create_tables(database_config(url)["db_url"])

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, verb: str, *args: str) -> str:
        """Run a command of the farm, and return its output."""
        done = run_torchyard(["farm", verb, self.master, *args], os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, *select: str) -> str:
        return self.run("submit", *select).strip()

    def start_master(self, *, wait: bool = True) -> None:
        self._start("master", "start", str(self.master), "--foreground")
        if wait:
            self.wait_for_master()

    def restart_master(self) -> None:
        """Kill the master, and start it again without waiting for it."""
        self.kill("master")
        self.start_master(wait=False)

    def wait_for_master(self) -> None:
        wait_until(self._answers, _STARTING, self.log)

    def start_worker(
        self, name: str, *more: str, port: int = 0, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a worker, through another port of the master if given."""
        place = str(self.folder / name)
        secret = str(self.master / "secrets" / name)
        where = f"{LOOPBACK}:{port or self.port}"
        given = ("--master", where, "--name", name, "--password-file", secret, *more)
        return self._start(name, "worker", place, *given, "--slots", str(self.slots), env=env)

    def start_workers(self) -> None:
        for name in self.names:
            self.start_worker(name)

    def signal(self, name: str, number: Signals) -> None:
        self._running[name].send_signal(number)

    def kill(self, name: str) -> None:
        """Kill the master or a worker process, and nothing else."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def processes(self, name: str) -> list[psutil.Process]:
        """Return all processes of a machine: its worker process, and its jobs, which outlive it."""
        work = f"{self.folder / name}/"
        found = [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(part.startswith(work) for part in process.info["cmdline"] or ())
        ]
        running = self._running.get(name)
        if running is not None and running.poll() is None:
            found.append(psutil.Process(running.pid))
        for process in list(found):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += process.children(recursive=True)
        return found

    def at_work(self) -> str:
        """Return the machine with a job whose step sleeps, if there is one."""
        for name in self.names:
            for process in self.processes(name):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if any("sleep" in part for part in process.cmdline()):
                        return name
        return ""

    def signal_machine(self, name: str, number: Signals) -> None:
        """Send a signal to all processes of a machine."""
        _signal_all(self.processes(name), number)

    def kill_machine(self, name: str) -> None:
        """Simulate the crash of a machine."""
        self._end_processes(name)
        self._running.pop(name).wait()

    def _end_processes(self, name: str) -> None:
        """Kill all processes of a machine.

        They are stopped first: else one would see another end, or start one more.
        """
        stopped: set[psutil.Process] = set()
        while new := set(self.processes(name)) - stopped:
            _signal_all(new, SIGSTOP)
            stopped |= new
        _signal_all(stopped, SIGKILL)

    def stop(self, name: str) -> int:
        process = self._running.pop(name)
        process.terminate()
        return process.wait(60)

    def is_done(self, plan: str) -> bool:
        return (self.master / "plans" / "ended" / f"{plan}.json").exists()

    def wait_done(self, plan: str) -> None:
        wait_until(lambda: self.is_done(plan), LONG, self.log)

    def buildsets(self) -> list[Buildset]:
        found: list[Buildset] = self._ask("buildsets")["buildsets"]  # type: ignore[assignment]
        return sorted(found, key=lambda one: one["bsid"])

    def builds(self) -> list[Build]:
        found: list[Build] = self._ask("builds")["builds"]  # type: ignore[assignment]
        return sorted(found, key=lambda one: one["buildid"])

    def pages(self) -> list[Builder]:
        """Return the virtual builders: the history pages of cells."""
        builders: list[Builder] = self._ask("builders")["builders"]  # type: ignore[assignment]
        return [one for one in builders if "_virtual_" in one["tags"]]

    def history(self, page: str) -> int:
        """Return the number of a cell's history page."""
        return next(one["builderid"] for one in self.pages() if one["name"] == page)

    def text(self, path: str) -> str:
        """Return the master's answer for a path, such as `api/v2/logs/1/raw`."""
        url = f"http://{LOOPBACK}:{self.web}/{path}"
        with urllib.request.urlopen(url, timeout=300) as answer:
            return str(answer.read().decode())

    def connected(self) -> set[str]:
        """Return the names of the connected workers."""
        return {agent["name"] for agent in self.agents() if agent["connected_to"]}

    def agents(self) -> list[Agent]:
        found: list[Agent] = self._ask("workers")["workers"]  # type: ignore[assignment]
        return found

    def has_said(self, what: str) -> bool:
        """Return whether the master has ever logged a text."""
        return what in self.log()

    def log(self) -> str:
        """Return the master's log."""
        path = self.master / "twistd.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def read(self, path: str) -> str:
        """Return rows of the master's web API; none if it does not answer."""
        url = f"http://{LOOPBACK}:{self.web}/api/v2/{path}"
        try:
            with urllib.request.urlopen(url) as answer:
                text: str = answer.read().decode()
                return text
        except urllib.error.HTTPError as error:
            error.close()
            return ""

    def _ask(self, path: str) -> dict[str, list[object]]:
        url = f"http://{LOOPBACK}:{self.web}/api/v2/{path}"
        with urllib.request.urlopen(url, timeout=300) as answer:
            found: dict[str, list[object]] = json.load(answer)
            return found

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self._ask("masters"))
        return False

    def _start(
        self, name: str, *args: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "torchyard", "farm", *args]
        if self.has_hosts and name in self.names:
            argv = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name, *argv]
        with (self.folder / f"{name}.out").open("ab") as out:
            self._running[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **(env or {})},
            )
        return self._running[name]

    def _end_all(self) -> None:
        for name in {*self.names, *self._running}:
            self._end_processes(name)
        for process in self._running.values():
            process.wait()


def _signal_all(processes: Iterable[psutil.Process], number: Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def wait_until(happened: Callable[[], bool], seconds: float, tell: Callable[[], str]) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, f"not in {seconds} s:\n{tell()[-6000:]}"
        time.sleep(0.3)  # polling takes time of the machine, too


def postgres_programs() -> Path | None:
    """Return the directory of the newest PostgreSQL's programs on Debian."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Postgres:
    """An empty PostgreSQL server; if the user is root, it runs as another user."""

    def __init__(self, folder: Path, port: int) -> None:
        programs = postgres_programs()
        assert programs is not None
        self._programs = programs
        self._user = "postgres" if os.geteuid() == 0 else None
        self._folder = folder
        self._port = port
        self._server: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._call("initdb", "--auth=trust", "--username=farm", "--no-sync", "-D", str(self._data))

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://farm@{LOOPBACK}:{self._port}/{name}"

    def make(self) -> str:
        """Create a database, and return its URL."""
        name = f"d{os.getpid()}_{time.monotonic_ns()}"
        self._call("createdb", "-h", LOOPBACK, "-p", str(self._port), "-U", "farm", name)
        return self.url(name)

    def start(self) -> None:
        options = {
            "listen_addresses": LOOPBACK,
            "port": self._port,
            "unix_socket_directories": self._folder,
            "fsync": "off",  # no durability is needed, and the disk may be busy
        }
        self._server = subprocess.Popen(
            [
                str(self._programs / "postgres"),
                "-D",
                str(self._data),
                *(f"--{key}={value}" for key, value in options.items()),
            ],
            user=self._user,
            cwd="/",
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._is_ready, 240, str)

    def stop(self, how: Signals = SIGINT) -> None:
        """Stop it: SIGINT stops it fast and cleanly, SIGQUIT as a crash would."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(60)
            self._server = None

    def restart(self, how: Signals = SIGINT) -> None:
        """Stop it, and start it again after a while."""
        self.stop(how)
        time.sleep(2)
        self.start()

    def _is_ready(self) -> bool:
        ready = [str(self._programs / "pg_isready"), "-q", "-h", LOOPBACK, "-p", str(self._port)]
        return subprocess.run(ready, check=False).returncode == 0

    def _call(self, program: str, *args: str) -> None:
        argv = [str(self._programs / program), *args]
        subprocess.run(argv, check=True, user=self._user, cwd="/", stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Run a PostgreSQL server."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name, reserved_port() as port:
        server = Postgres(Path(name), port)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server with a database, and return its URL."""
    with postgres_server() as server:
        yield server.url()
