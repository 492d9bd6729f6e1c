"""Jobs that outlive whoever asked for them, and how others follow and end them."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import msgspec
import psutil
import pytest
from tests.integration.test_crash import ALL, Zygote, contents, started, told
from tests.integration.test_crash import Config as Killed
from tests.integration.test_secrets import SECRET, SECRETS, SNOOPS
from tests.support.crash_driver import Deed, Kill
from tests.support.helpers import CORE, ROOT, WORKS, make_project
from tests.support.publishing import PUBLISHES, make_publishing_project, torchyard

from torchyard.errors import StoppedError
from torchyard.model.matrix import Needs
from torchyard.run.detached import detached_in, end_named
from torchyard.run.local_jobs import running_jobs
from torchyard.store.store import Store
from torchyard.store.trees import read_result_log

pytestmark = pytest.mark.integration

Program = subprocess.Popen[str]


def wait_until(is_so: Callable[[], object]) -> None:
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def supervisors_in(work: Path) -> list[psutil.Process]:
    found = []
    for record in work.glob("*.detached"):
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError, psutil.NoSuchProcess):
            first = json.loads(record.read_text("utf-8").partition("\n")[0])
            found.append(psutil.Process(first["pid"]))
    return found


class Config:
    """A project with one job whose second step goes on until it is let go, well or not."""

    def __init__(self, folder: Path) -> None:
        waits = (
            f"echo $$ >> {folder}/tries; until test -e {folder}/go; do sleep 0.02; done; "
            f"test ! -e {folder}/bad || exit 1; ls {{out}}/lib >"
        )
        self.folder = folder
        self.file = make_project(folder / "project", WORKS.replace("ls {out}/lib >", waits))
        self.work = folder / "project/.torchyard/work"
        self.argv = [sys.executable, "-m", "torchyard", "run", CORE, "--detach"]
        self.argv += ["-f", str(self.file)]
        self._programs: list[Program] = []
        assert self.run("source:demo-1.0").returncode == 0

    def start(self, *words: str, wait: bool = True, cwd: Path | None = None) -> Program:
        """Ask for a detached job in a session of its own; wait until its step runs."""
        program = subprocess.Popen(
            [*self.argv, *words],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._programs.append(program)
        if wait:
            wait_until(lambda: self.tries)
        return program

    def join(self) -> Program:
        """Ask for a detached job that runs; wait until it is followed."""
        program = self.start(wait=False)
        assert program.stderr is not None
        line = b""
        while not line.endswith(b"\n"):  # no more than this: `communicate` reads behind a buffer
            line += os.read(program.stderr.fileno(), 1)
        assert b"already runs detached on this machine" in line
        return program

    def run(self, job: str = CORE, *words: object) -> subprocess.CompletedProcess[str]:
        return torchyard("run", job, "-f", self.file, *words)

    def detach(self) -> subprocess.CompletedProcess[str]:
        return self.run(CORE, "--detach")

    def cancel(self) -> subprocess.CompletedProcess[str]:
        return torchyard("run", "cancel", CORE, "-f", self.file)

    def let_go(self, *, well: bool = True) -> None:
        if not well:
            (self.folder / "bad").touch()
        (self.folder / "go").touch()

    @property
    def tries(self) -> list[int]:
        """The processes of the second step, in each of its tries."""
        path = self.folder / "tries"
        return [int(line) for line in path.read_text("utf-8").split()] if path.exists() else []

    def supervisor(self) -> psutil.Process:
        (found,) = supervisors_in(self.work)
        return found

    def end(self) -> None:
        self.cancel()
        for program in self._programs:
            program.kill()
            program.communicate()


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Config]:
    config = Config(tmp_path)
    yield config
    config.end()


def test_what_runs_on_a_machine_can_be_listed_and_ended(config: Config) -> None:
    assert detached_in(config.work) == {}
    began = time.monotonic()
    program = config.start()
    ((name, begun),) = detached_in(config.work).items()
    assert begun is not None
    assert 0 <= begun.age <= time.monotonic() - began + 0.1
    (here,) = running_jobs(config.work)
    assert (here.name, here.fingerprint, here.takes) == (name, begun.fingerprint, Needs())
    assert here.fingerprint.startswith(name.removeprefix("core-"))
    assert (config.work / name).is_dir()
    end_named(config.work, name)
    assert end_of(program)[0] == 143
    assert detached_in(config.work) == {}
    assert all(is_gone(pid) for pid in config.tries)
    end_named(config.work, name)  # it is over: nothing is done


def end_of(program: Program) -> tuple[int, str]:
    _, err = program.communicate(timeout=120)
    return program.returncode, err


def is_gone(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


@pytest.mark.slow
def test_it_is_told_as_if_it_ran_here(config: Config) -> None:
    config.let_go(well=False)
    plain, detached = config.run(), config.detach()
    assert plain.returncode == detached.returncode == 9
    assert "`list` failed with exit code 1" in detached.stderr
    first, *others = plain.stderr.splitlines()
    assert first.startswith("started")
    assert detached.stderr.splitlines()[0] == first
    assert detached.stderr.splitlines()[-1] == others[-1], "the hint"
    (config.folder / "bad").unlink()
    done = config.run(CORE, "--detach", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["started", "stepping", "stepped", "ended"]
    assert events[-1]["outcome"] == "built"
    assert not list(config.work.iterdir())
    assert config.detach().stderr.startswith("cached")
    assert len(config.tries) == 3


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_it_outlives_who_asked_for_it(config: Config, number: signal.Signals) -> None:
    first = config.start()
    os.killpg(first.pid, number)
    code, err = end_of(first)
    assert code in {-number, 128 + number}
    assert (f"{CORE} continues" in err) == (number in {signal.SIGTERM, signal.SIGINT})
    second = config.join()
    config.let_go()
    code, err = end_of(second)
    assert code == 0, err
    began, *_, last = err.splitlines()
    assert began == f"started  {CORE}", "from its beginning"
    assert last.startswith(f"built    {CORE}")
    assert len(config.tries) == 1
    assert not list(config.work.iterdir())


def test_who_asks_in_a_directory_that_is_removed(config: Config) -> None:
    """A step that fails is explained with the directory that one is in."""
    gone = config.folder / "gone"
    gone.mkdir()
    program = config.start(cwd=gone)
    gone.rmdir()
    config.let_go(well=False)
    code, err = end_of(program)
    assert code == 9
    assert err.count("failed with exit code 1") == 2
    assert f"torchyard shell -f {config.file}" in " ".join(err.split())


@pytest.mark.slow
def test_an_end_that_nobody_heard_is_told_once(config: Config) -> None:
    config.start().kill()
    supervisor = config.supervisor()
    config.let_go(well=False)
    wait_until(lambda: is_gone(supervisor.pid))
    heard = config.detach()
    assert heard.returncode == 9
    assert "ended without a follower" in heard.stderr
    assert "`list` failed with exit code 1" in heard.stderr
    assert len(config.tries) == 1
    again = config.detach()
    assert again.returncode == 9
    assert "ended without a follower" not in again.stderr
    assert len(config.tries) == 2


def test_the_store_knows_better_than_a_record(config: Config) -> None:
    config.start().kill()
    supervisor = config.supervisor()
    config.let_go(well=False)
    wait_until(lambda: is_gone(supervisor.pid))
    (config.folder / "bad").unlink()
    assert config.run().returncode == 0
    assert config.detach().stderr == f"cached   {CORE}\n"
    assert not list(config.work.iterdir())


def test_nobody_hears_for_a_reader_that_is_gone(config: Config) -> None:
    """Its pipe broke: what it was told has reached nobody."""
    program = config.start()
    assert program.stderr is not None
    program.stderr.close()
    config.let_go(well=False)
    assert program.wait(timeout=120) == 141
    assert "ended without a follower" in config.detach().stderr


def test_a_follower_ends_with_its_parent(config: Config) -> None:
    line = f"{shlex.join(config.argv)} 2> /dev/null & echo $!; wait"
    with subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        follower = int(shell.stdout.readline())
        wait_until(lambda: config.tries)
        shell.kill()
    wait_until(lambda: is_gone(follower))
    config.let_go(well=False)
    supervisor = config.supervisor()
    wait_until(lambda: is_gone(supervisor.pid))
    assert "ended without a follower" in config.detach().stderr


def test_of_several_at_once_one_starts_it(config: Config) -> None:
    programs = [config.start(wait=False) for _ in range(6)]
    wait_until(lambda: config.tries)
    wait_until(lambda: len(psutil.Process(config.supervisor().pid).children()) == 1)
    time.sleep(1)
    config.let_go()
    ends = [end_of(program) for program in programs]
    assert [code for code, _ in ends] == [0] * 6, ends
    assert sum("already" not in err and "cached" not in err for _, err in ends) == 1
    assert len(config.tries) == 1
    assert not list(config.work.iterdir())


@pytest.mark.slow
def test_a_supervisor_that_is_killed_is_missed(config: Config) -> None:
    first, second = config.start(), config.join()
    time.sleep(1.5)  # until followers look seldom
    config.supervisor().kill()
    for program in (first, second):
        code, err = end_of(program)
        assert code == 75
        assert "the detached process that ran it is gone" in err
    (left,) = config.tries
    assert not is_gone(left)
    third = config.start(wait=False)
    wait_until(lambda: len(config.tries) == 2)
    assert is_gone(left), "what it left was ended"
    config.let_go()
    code, err = end_of(third)
    assert code == 0
    assert "already" not in err
    assert "compile" not in err, "it went on behind the first step"
    assert not list(config.work.iterdir())


def test_a_job_that_is_cancelled(config: Config) -> None:
    program = config.start("--json")
    done = config.cancel()
    assert done.returncode == 0
    assert done.stderr.startswith(f"{CORE} was stopped; its directory is {config.work}/core-")
    out, err = program.communicate(timeout=120)
    assert program.returncode == 143
    assert f"error: {CORE} was stopped" in err
    ended = json.loads(out.splitlines()[-1])
    assert (ended["event"], ended["code"]) == ("ended", 143)
    (step,) = config.tries
    assert is_gone(step)
    (folder,) = (path for path in config.work.iterdir() if path.is_dir())
    assert (folder / "job/out/lib/core.bin").exists()
    assert not list(config.work.glob("*.detached"))
    again = config.cancel()
    assert again.returncode == 0
    assert f"{CORE} does not run detached in {config.work}" in again.stderr
    config.let_go()
    next_run = config.detach()
    assert next_run.returncode == 0
    assert "compile" not in next_run.stderr


def test_cancelling_ends_what_a_killed_supervisor_left(config: Config) -> None:
    config.start()
    supervisor = config.supervisor()
    supervisor.kill()
    (step,) = config.tries
    wait_until(lambda: is_gone(supervisor.pid))
    assert not is_gone(step)
    assert "does not run detached" in config.cancel().stderr
    assert is_gone(step)


@pytest.mark.slow
def test_old_records_are_removed(config: Config) -> None:
    config.start().kill()
    supervisor = config.supervisor()
    kept = torchyard("store", "gc", "--grace", "0", "-f", config.file)
    assert list(config.work.glob("*.detached")), kept.stdout
    config.let_go(well=False)
    wait_until(lambda: is_gone(supervisor.pid))
    young = torchyard("store", "gc", "-f", config.file)
    (record,) = config.work.glob("*.detached")
    assert str(record) not in young.stdout
    gone = torchyard("store", "gc", "--grace", "0", "-f", config.file)
    assert f"removed {record}" in gone.stdout
    assert not record.exists()


def test_only_publishing_gets_credentials(tmp_path: Path) -> None:
    """Neither its environment nor that of a process above it has them, and no file does."""
    publish = (
        f"[[steps.publish]]\nrun = '''{SNOOPS}'''\n\n"
        "[[steps.publish]]\n"
        'run = "printf %s \\"$AWS_SECRET_ACCESS_KEY\\" | sha256sum; false {channel}"\n\n'
        f"[[steps.core]]\nrun = '''{SNOOPS}'''\n\n[steps]"
    )
    text = PUBLISHES.replace("[steps]", publish) + '[sandbox]\nkind = "none"\n'
    file = make_publishing_project(tmp_path, text)
    core = ("run", CORE, "--detach", "-f", file)
    assert torchyard("run", "source:demo-1.0", "-f", file).returncode == 0
    done = torchyard(*core, env={**SECRETS, "SEEN": "by-everybody"})
    assert done.returncode == 0, done.stderr
    store = Store.at(str(tmp_path / ".torchyard/store"))
    (result,) = (r for r in store.results() if r.spec.task.stage == "core")
    log = b"".join(read_result_log(store, result)).decode()
    assert "torchyard.features.run.supervise" in log
    assert "SEEN=by-everybody" in log
    assert not any(value in log or f"{name}=" in log for name, value in SECRETS.items())

    assert torchyard("build", "-f", file, "--skip", "publish:*").returncode == 0
    failed = torchyard("run", "publish:demo-1.0/nightly", "--detach", "-f", file, env=SECRETS)
    assert failed.returncode == 9, failed.stderr
    (path,) = (tmp_path / ".torchyard/work").glob("publish-*/log")
    log = path.read_text("utf-8")
    assert sha256(SECRET.encode()).hexdigest() in log, "the step had the real one"
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    for value in SECRETS.values():
        assert value not in log + failed.stderr
        assert value.encode() not in everything


class Anew:
    """The same job again and again, each time with a store that has nothing but its inputs."""

    def __init__(self, folder: Path, zygote: Zygote) -> None:
        self.count = folder / "count"
        text = WORKS.replace("ls {out}", f"sleep 0.5; echo >> {self.count}; ls {{out}}")
        self._yard = Killed(folder, zygote, text)
        self._yard.build("source")
        self._folders = (folder / f"store-{number}" for number in range(1000))

    def deed(self) -> Deed:
        self.count.unlink(missing_ok=True)
        store = shutil.copytree(self._yard.store, next(self._folders))
        return msgspec.structs.replace(self._yard.deed("core", str(store)), what="detach")


@pytest.mark.slow
@pytest.mark.parametrize("every", [pytest.param(4, id="some"), ALL])
def test_whoever_asks_is_killed_at_every_step(tmp_path: Path, every: int) -> None:
    """It leaves nothing, or a supervisor that the next one follows: the steps run once."""
    with started() as zygote:
        jobs = Anew(tmp_path, zygote)
        (before,) = zygote.succeed(jobs.deed()).starts
        assert before >= 5
        kills = [Kill("file", number + 1) for number in range(before + 4)]
        kills += [Kill("process", 1, n * n / 500) for n in range(1, 16)]
        kills = kills[::every]
        running = []
        for kill in kills:
            deed = jobs.deed()
            with told(kill):
                running.append(zygote.die(deed, kill).running)
                zygote.succeed(deed)
                assert jobs.count.read_text("utf-8") == "\n"
                assert not list(Path(deed.folder, "work").iterdir())
        assert 2 <= sum(running) <= len(kills) - 2


@pytest.mark.slow
def test_a_supervisor_is_killed_at_any_time(tmp_path: Path) -> None:
    """Its follower hears of the result or of the loss, and the next one makes all right."""
    with started() as zygote, ThreadPoolExecutor(1) as pool:
        jobs = Anew(tmp_path, zygote)
        zygote.succeed(first := jobs.deed())
        expected, lost, work = contents(first), 0, Path(first.folder, "work")
        for delay in range(0, 600, 40):
            deed = jobs.deed()
            following = pool.submit(zygote.do, deed)
            wait_until(lambda: supervisors_in(work))
            time.sleep(delay / 1000)
            for supervisor in supervisors_in(work):
                supervisor.kill()
            ended = following.result()
            assert ended.code == 0 or "ElsewhereError" in ended.said
            lost += ended.code != 0
            zygote.succeed(deed)
            assert contents(deed) == expected
            assert not list(work.iterdir())
        assert lost >= 5


STOPPED_LATE = """\
import os, signal, sys
if "torchyard.features.run.supervise" in sys.orig_argv:
    from torchyard.workspace import faults

    def stopped_late(error, redacted=faults.redacted_diagnostics):
        os.kill(os.getpid(), signal.SIGTERM)
        return redacted(error)

    faults.redacted_diagnostics = stopped_late
"""
"""Lets somebody stop a job that has failed, before that is told."""


def test_a_job_that_is_stopped_when_it_is_over_says_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(STOPPED_LATE, encoding="utf-8")
    paths = (str(folder), str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    done = torchyard("run", CORE, "--detach", "-f", make_project(tmp_path / "project"))
    assert done.returncode == StoppedError.exit_code, done.stderr
    assert "was stopped" in done.stderr
