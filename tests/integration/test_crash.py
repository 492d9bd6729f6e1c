"""Safe to kill: at every moment, on every kind of store, a second try makes everything right.

A moment is the begin or the end of an operation on a store, or the begin of one on files. How
many there are is counted in a run that nobody disturbs; each then gets a run that is killed at
it, and one more that must leave nothing but the result.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count, product
from pathlib import Path

import msgspec
import obstore
import pytest
from tests.support.crash_driver import Deed, Ended, Kill, Moment
from tests.support.helpers import CORE, PACKAGE, ROOT, WORKS, make_project
from tests.support.services import S3Server

from torchyard.config.load import load_config
from torchyard.host.snapshot import EPOCH
from torchyard.host.tree import read_source_tree
from torchyard.model.identifier import parse
from torchyard.model.job_spec import JobSpec
from torchyard.plan.build import make_plan_with
from torchyard.plan.job_specs import make_job_spec
from torchyard.store.gc import remove_garbage
from torchyard.store.store import Store
from torchyard.store.verify import verify

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NO_TIME = timedelta(minutes=-1)
SOURCE = "source:demo-1.0"
BINDINGS = "bindings:demo-1.0/linux-x86_64/cpu-openblas/cp312"
JOBS = {"source": SOURCE, "core": CORE, "bindings": BINDINGS, "package": PACKAGE}
JOBS["other"] = BINDINGS.replace("cp312", "cp311")

TEXT = WORKS.replace("mkdir -p {out}/lib;", "mkdir -p {out}/lib; ninja --version;")
LARGE = TEXT.replace("; cat", "; head -c 20000000 /dev/zero > {out}/lib/large; cat")

STORE: tuple[Moment, ...] = ("before", "after")
FILES: tuple[Moment, ...] = ("file",)

POINTS = {
    ("directory", "source", STORE): 24,
    ("directory", "source", FILES): 40,
    ("directory", "core", STORE): 28,
    ("directory", "core", FILES): 65,
    ("directory", "package", STORE): 28,
    ("directory", "package", FILES): 60,
    ("directory", "collect", STORE): 38,
    ("directory", "copy", STORE): 100,
    ("directory", "copy", FILES): 20,
    ("bucket", "source", STORE): 24,
    ("bucket", "core", STORE): 28,
    ("bucket", "package", STORE): 28,
    ("bucket", "collect", STORE): 38,
    ("bucket", "copy", STORE): 100,
}
"""How many moments there are at least; if there are fewer, something is no longer counted."""


AT_NIGHT = [("bucket", deed) for deed in ("source", "package", "copy")]
"""In CI, the same deeds are done in directories, and other ones in buckets."""


ALL = pytest.param(1, id="all", marks=pytest.mark.slow)
SOME = pytest.param(24, id="some")

Point = tuple[str, str, tuple[Moment, ...]]


def moments_of(*deeds: str) -> pytest.MarkDecorator:
    chosen = [point for point in POINTS if point[1] in deeds]
    values = [
        pytest.param(
            point[0],
            point,
            id="-".join((*point[:2], point[2][0])),
            marks=pytest.mark.slow if point[:2] in AT_NIGHT else (),
        )
        for point in chosen
    ]
    return pytest.mark.parametrize(("stock", "point"), values, indirect=["stock"])


def test_there_are_enough_moments() -> None:
    assert sum(POINTS.values()) >= 600
    in_ci = [count // 24 for point, count in POINTS.items() if point[:2] not in AT_NIGHT]
    assert sum(in_ci) >= 15, "CI takes every 24th"


class Zygote:
    """The program that does deeds, and dies of them."""

    def __init__(self, program: "subprocess.Popen[bytes]") -> None:
        self._program = program

    def do(self, deed: Deed) -> Ended:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        Path(deed.folder, "temporary").mkdir(parents=True, exist_ok=True)
        self._program.stdin.write(msgspec.json.encode(deed) + b"\n")
        self._program.stdin.flush()
        return msgspec.json.decode(self._program.stdout.readline(), type=Ended)

    def succeed(self, deed: Deed) -> Ended:
        """Do a deed that nothing may be left of."""
        ended = self.do(deed)
        assert ended.code == 0, ended.said
        assert not ended.running
        assert not list(Path(deed.folder, "temporary").iterdir())
        return ended

    def die(self, deed: Deed, kill: Kill) -> Ended:
        ended = self.do(msgspec.structs.replace(deed, kill=kill))
        assert ended.code == -signal.SIGKILL, ended.said
        return ended

    def may_die(self, deed: Deed, kill: Kill) -> bool:
        """Die, unless the moment does not come: some come by the clock."""
        ended = self.do(msgspec.structs.replace(deed, kill=kill))
        assert ended.code in (0, -signal.SIGKILL), ended.said
        return ended.code != 0


@contextlib.contextmanager
def started(*tracer: str) -> Iterator[Zygote]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE_")}
    with subprocess.Popen(
        [*tracer, sys.executable, "-m", "tests.support.crash_driver"],
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        yield Zygote(program)


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    with started() as zygote:
        yield zygote


Stock = Callable[[Path], str]
"""Makes a store with the contents of a directory, and tells its URL."""


@pytest.fixture
def stock(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stock:
    """Make stores, in directories or in buckets."""
    if request.param == "directory":
        numbers = count()

        def in_directory(model: Path) -> str:
            folder = tmp_path / f"store-{next(numbers)}"
            if model.exists():
                shutil.copytree(model, folder)
            return str(folder)

        return in_directory

    server: S3Server = request.getfixturevalue("s3_server")
    for name, text in server.place().environment.items():
        monkeypatch.setenv(name, text)

    def in_bucket(model: Path) -> str:
        place = server.place()
        store = place.store()
        paths = [path for path in model.rglob("*") if path.is_file()]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda p: obstore.put(store, str(p.relative_to(model)), p), paths))
        return place.url

    return in_bucket


class Config:
    """A project, its jobs, and a store with the results of those that are done."""

    def __init__(self, folder: Path, zygote: Zygote, text: str = TEXT) -> None:
        self.file = make_project(folder / "project", text)
        code = self.file.parent / "code"
        (code / "deep").mkdir()
        (code / "deep/tool").write_text("#!/bin/sh\n", encoding="utf-8")
        (code / "deep/tool").chmod(0o755)
        (code / "link").symlink_to("deep/tool")
        self.store = folder / "model"
        self._folder = folder
        self._zygote = zygote

    def spec(self, name: str) -> JobSpec:
        job = parse(JOBS[name])
        assert job.stage is not None
        plan = make_plan_with(load_config(str(self.file)), job)
        return make_job_spec(plan, plan.find(job.stage, job.path))

    def fingerprints(self, name: str) -> frozenset[str]:
        """Those of a job and of everything that it needs."""
        return frozenset(task.fingerprint for task in self.spec(name).tasks)

    def deed(self, name: str, store: str) -> Deed:
        return Deed(
            what="run",
            folder=str(self._folder / f"run-{name}"),
            store=store,
            spec=self.spec(name),
            file=str(self.file),
        )

    def build(self, *names: str) -> None:
        for name in names:
            self._zygote.succeed(self.deed(name, str(self.store)))

    def build_until(self, name: str) -> None:
        """Do everything that a job needs."""
        names = list(JOBS)
        self.build(*names[: names.index(name)])


def kills(ended: Ended, point: Point, every: int) -> list[Kill]:
    """The moments that came in a run that nobody disturbed: all of them, or every so many."""
    found = [
        Kill(moment, number)
        for moment in point[2]
        for number in range(1, ended.moments[moment] + 1)
    ]
    assert len(found) >= POINTS[point]
    return found[::every]


@contextlib.contextmanager
def told(kill: Kill) -> Iterator[None]:
    """Say in a failure which moment it was."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"killed at {kill}")
        raise


def contents(deed: Deed) -> object:
    """What the result of a job must be in every run: all but times."""
    assert deed.spec is not None
    result = Store.at(deed.store).find(deed.spec.task.fingerprint)
    assert result is not None
    tree = result.tree
    return [(f.path, f.digest, f.size, f.executable) for f in tree.files], tree.links, tree.empty


def check_store(url: str, results: frozenset[str]) -> None:
    """Make sure that a store is right, and has nothing but some results once it was swept."""
    store = Store.at(url)
    assert verify(store).is_clean
    remove_garbage(store, results, NO_TIME)
    found = list(store.results())
    assert {result.fingerprint for result in found} == results
    expected = {f"blobs/{d[:2]}/{d}" for result in found for d in result.blobs()}
    assert {meta.key for meta in store.objects.list("blobs/")} == expected
    assert not list(store.objects.list("claims/"))
    assert not list(store.objects.list("sweeps/active/"))
    assert not list(store.objects.leftovers())


def check_run(deed: Deed, expected: object) -> None:
    """Make sure that a job has left its result, and nothing else."""
    assert deed.spec is not None
    assert contents(deed) == expected
    assert not list(Path(deed.folder, "work").iterdir())
    check_store(deed.store, frozenset(task.fingerprint for task in deed.spec.tasks))


@pytest.mark.parametrize("every", [SOME, ALL])
@moments_of("source", "core", "package")
def test_a_job_that_is_killed(
    stock: Stock, zygote: Zygote, tmp_path: Path, point: Point, every: int
) -> None:
    config = Config(tmp_path, zygote)
    config.build_until(point[1])
    deed = config.deed(point[1], stock(config.store))
    counted = zygote.succeed(deed)
    expected = contents(deed)
    check_run(deed, expected)
    for kill in kills(counted, point, every):
        deed = msgspec.structs.replace(deed, store=stock(config.store))
        with told(kill):
            zygote.die(deed, kill)
            zygote.succeed(deed)
            check_run(deed, expected)


@pytest.mark.parametrize("every", [pytest.param(20, id="some"), ALL])
@pytest.mark.parametrize("stock", ["directory"], indirect=True)
def test_a_job_that_is_killed_over_its_copies(
    stock: Stock, zygote: Zygote, tmp_path: Path, every: int
) -> None:
    """What it left of them by half does no harm to the next run, which uses them."""
    config = Config(tmp_path, zygote)
    config.build_until("package")
    deed = msgspec.structs.replace(config.deed("package", stock(config.store)), copies=10**9)
    counted = zygote.succeed(deed)
    expected, work = contents(deed), Path(deed.folder, "work")
    for number in range(1, counted.moments["file"] + 1, every):
        deed = msgspec.structs.replace(deed, store=stock(config.store))
        shutil.rmtree(work / "copies", ignore_errors=True)
        with told(Kill("file", number)):
            zygote.die(deed, Kill("file", number))
            zygote.succeed(deed)
            assert contents(deed) == expected
            assert [path.name for path in work.iterdir()] == ["copies"]


@pytest.mark.parametrize("every", [SOME, ALL])
@moments_of("collect")
def test_a_sweep_that_is_killed(
    stock: Stock, zygote: Zygote, tmp_path: Path, point: Point, every: int
) -> None:
    """Neither the next sweep minds, nor writers of what was about to be removed, or is new."""
    config = Config(tmp_path, zygote)
    config.build_until("other")
    deed = Deed(what="collect", folder=str(tmp_path / "collect"), store=stock(config.store))
    deed = msgspec.structs.replace(deed, keep=config.fingerprints("core"))
    counted = zygote.succeed(deed)
    check_store(deed.store, config.fingerprints("core"))
    wanted = [config.deed(name, deed.store) for name in ("bindings", "other")]
    for run in wanted:
        zygote.succeed(run)
    expected = [contents(run) for run in wanted]
    chosen = kills(counted, point, every)
    deaths = 0
    for number, kill in enumerate(chosen):
        deed = msgspec.structs.replace(deed, store=stock(config.store))
        with told(kill):
            deaths += zygote.may_die(deed, kill)  # a sweep shows by the clock that it lives
            if number % 2:
                zygote.succeed(deed)
            runs = [msgspec.structs.replace(run, store=deed.store) for run in wanted]
            for run in runs:
                zygote.succeed(run)
            assert [contents(run) for run in runs] == expected
            check_run(runs[-1], expected[-1])
    # How many writes a sweep has depends on the clock: of few kills, only the first is sure.
    assert deaths > (len(chosen) // 2 if every == 1 else 0)


@pytest.mark.parametrize("every", [SOME, ALL])
@moments_of("copy")
def test_a_copy_that_is_killed(
    stock: Stock, zygote: Zygote, tmp_path: Path, point: Point, every: int
) -> None:
    config = Config(tmp_path, zygote)
    config.build_until("other")
    deed = Deed(what="copy", folder=str(tmp_path / "copy"), store=str(config.store))
    deed = msgspec.structs.replace(deed, target=stock(tmp_path / "nothing"))
    counted = zygote.succeed(deed)
    expected = config.fingerprints("package")
    check_store(deed.target, expected)
    for kill in kills(counted, point, every):
        deed = msgspec.structs.replace(deed, target=stock(tmp_path / "nothing"))
        with told(kill):
            zygote.die(deed, kill)
            zygote.succeed(deed)
            check_store(deed.target, expected)


@pytest.mark.slow
@pytest.mark.parametrize("every", [pytest.param(6, id="some"), ALL])
@pytest.mark.parametrize(
    "stock", ["directory", pytest.param("bucket", marks=pytest.mark.slow)], indirect=True
)
def test_a_large_upload_that_is_killed(
    stock: Stock, zygote: Zygote, tmp_path: Path, every: int
) -> None:
    """Its parts are on their way in threads of obstore's own."""
    config = Config(tmp_path, zygote, LARGE)
    config.build("source")
    deed = config.deed("core", stock(config.store))
    counted = zygote.succeed(deed)
    assert counted.moments["large"] == 1
    expected = contents(deed)
    uploads = [counted.upload]
    for _ in range(2):
        again = msgspec.structs.replace(deed, store=stock(config.store))
        uploads.append(zygote.succeed(again).upload)
    died = 0
    for tenth in range(1, 10, every):
        kill = Kill("large", 1, min(uploads) * tenth / 10)
        deed = msgspec.structs.replace(deed, store=stock(config.store), kill=kill)
        with told(kill):
            died += zygote.do(deed).code == -signal.SIGKILL  # unless it was quicker this time
            deed = msgspec.structs.replace(deed, kill=None)
            zygote.succeed(deed)
            check_run(deed, expected)
    assert died


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("every", [pytest.param(4, id="some"), ALL])
@pytest.mark.parametrize("stock", ["directory"], indirect=True)
def test_a_job_that_is_killed_at_system_calls(
    stock: Stock, zygote: Zygote, tmp_path: Path, every: int
) -> None:
    """Those of obstore are among them, which Python sees nothing of."""
    config = Config(tmp_path, zygote)
    config.build("source")
    deed = config.deed("core", stock(config.store))
    zygote.succeed(deed)
    expected = contents(deed)
    died = 0
    numbers = range(1, 5, every)
    for call, number in product(("link", "unlink", "rename", "write"), numbers):
        deed = msgspec.structs.replace(deed, store=stock(config.store))
        names = ",".join(f"?{call}{suffix}" for suffix in ("", "at", "at2"))
        inject = f"inject={names}:signal=KILL:when={number}"
        tracer = ("strace", "-f", "-o", os.devnull, "-e", f"trace={names}", "-e", inject)
        with started(*tracer) as own, contextlib.suppress(msgspec.DecodeError):  # died itself
            died += own.do(deed).code == -signal.SIGKILL
        zygote.succeed(deed)
        check_run(deed, expected)
    assert died >= 2 * len(numbers)


@pytest.mark.parametrize("stock", ["directory"], indirect=True)
def test_a_run_that_is_killed_over_its_step(stock: Stock, zygote: Zygote, tmp_path: Path) -> None:
    """The step goes on for as long as nobody ends it, but not if nobody would know of it."""
    awake, asleep = tmp_path / "awake", tmp_path / "asleep"
    wait = f"test -e {awake} || touch {asleep}; test -e {awake} || sleep 1000"
    text = TEXT.replace("ls {out}", f"{wait}; ls {{out}}")
    config = Config(tmp_path, zygote, text)
    config.build("source")
    awake.touch()
    deed = config.deed("core", stock(config.store))
    counted = zygote.succeed(deed)
    expected = contents(deed)
    last = counted.starts[-1] + 1
    unknown = [Kill("file", last + number) for number in range(3)]
    known = [Kill("process", 2, delay) for delay in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)]
    over_it = Kill("process", 2, until=str(asleep))
    for kill in (*unknown, *known, over_it):
        deed = msgspec.structs.replace(deed, store=stock(config.store))
        with told(kill):
            awake.unlink()
            asleep.unlink(missing_ok=True)
            left = zygote.die(deed, kill)
            assert left.running or kill != over_it
            awake.touch()
            zygote.succeed(deed)
            check_run(deed, expected)


def test_a_copy_of_the_source_that_is_killed(zygote: Zygote, tmp_path: Path) -> None:
    code = Config(tmp_path, zygote).file.parent / "code"
    deed = Deed(what="snapshot", folder=str(tmp_path / "run"), file=str(code))
    check_snapshots(zygote, deed, code, 1)


@pytest.mark.parametrize("every", [pytest.param(8, id="some"), ALL])
def test_a_check_out_that_is_killed(zygote: Zygote, tmp_path: Path, every: int) -> None:
    code = Config(tmp_path, zygote).file.parent / "code"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=code, check=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=code, capture_output=True, text=True, check=True
    ).stdout.strip()
    deed = Deed(what="check out", folder=str(tmp_path / "run"), file=f"file://{code}@{commit}")
    check_snapshots(zygote, deed, code, every)


def check_snapshots(zygote: Zygote, deed: Deed, code: Path, every: int) -> None:
    """Kill a snapshot at operations on files; the next one must be right."""
    out = Path(deed.folder, "out")
    moments = zygote.succeed(deed).moments["file"]
    assert moments >= 20
    for number in range(1, moments + 1, every):
        shutil.rmtree(out)
        with told(kill := Kill("file", number)):
            zygote.die(deed, kill)
            zygote.succeed(deed)
            assert read_source_tree(str(out)).digest == read_source_tree(str(code)).digest
            assert not (out / ".git").exists()
            assert os.access(out / "deep/tool", os.X_OK)
            assert {path.lstat().st_mtime for path in out.rglob("*")} == {EPOCH}
