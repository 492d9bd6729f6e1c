"""Full disks, failing stores and jumping clocks: none of them loses or corrupts a result."""

import errno
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import cycle
from pathlib import Path
from typing import NamedTuple, Self

import msgspec
import obstore
import pytest
from tests.support.faults import Fault, FaultyProxy, Plan, Request, no_fault
from tests.support.forked import run_torchyard
from tests.support.helpers import CORE, PACKAGE, ROOT, WORKS, Command, make_project
from tests.support.services import Place, S3Server, reserved_port
from tests.support.smoke import make_wheel
from tests.unit.test_store import NO_TIME, store_result, task_of

from torchyard.errors import ElsewhereError
from torchyard.host.process import capture
from torchyard.host.process_id import group_is_running
from torchyard.host.snapshot import check_out, copy_folder
from torchyard.host.tree import read_source_tree
from torchyard.model.canonical import canonical_json
from torchyard.model.job_spec import JobSpec
from torchyard.model.result import Result
from torchyard.run import job, log
from torchyard.run.workdir import JobState, WorkDir
from torchyard.store import bucket, claims, gc_lease, retries
from torchyard.store.bucket import SILENCE
from torchyard.store.gc import remove_garbage
from torchyard.store.keys import claim_key, result_key
from torchyard.store.retries import PATIENCE
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import Writer, fetch_tree
from torchyard.store.verify import verify
from torchyard.workspace import clock

pytestmark = pytest.mark.integration

SOURCE = "source:demo-1.0"
BINDINGS = "bindings:demo-1.0/linux-x86_64/cpu-openblas/cp312"
JOBS = (SOURCE, CORE, BINDINGS, PACKAGE)
COMPILE = "cat {source}/*.txt > {out}/lib/core.bin"
LIST = "ls {out}/lib > {out}/listing"

Room = Callable[[str], None]


def core_of(store: Store, folder: Path) -> bytes:
    """The one file of the core as the store has it, checked."""
    (core,) = [found for found in store.results() if found.id == CORE]
    shutil.rmtree(folder, ignore_errors=True)
    fetch_tree(store, core.tree, folder)
    return (folder / "lib/core.bin").read_bytes()


def outcomes(text: str) -> Counter[object]:
    told = (json.loads(line) for line in text.splitlines())
    return Counter(event["outcome"] for event in told if event["event"] == "ended")


def start_build(
    file: Path, *args: object, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "torchyard", "build", "-f", str(file), "--json", *map(str, args)],
        env={**os.environ, "COLUMNS": "300", "NO_COLOR": "1", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def build(file: Path, *args: object, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    whole = {**os.environ, "COLUMNS": "300", "NO_COLOR": "1", **(env or {})}
    done = run_torchyard(["build", "-f", file, "--json", *args], whole)
    return done.returncode, done.stdout, done.stderr


# ----------------------------------------------------------------------------- full disks


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of a few megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount") or "mount"
    try:
        words = [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
        subprocess.run(words, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        pytest.skip(f"no small disk can be mounted here: {said}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(folder: Path, size: str) -> None:
    words = ["mount", "-o", f"remount,size={size}", str(folder)]
    subprocess.run(words, check=True)


def make_room(folder: Path) -> None:
    resize(folder, "200m")


def test_a_full_disk_is_not_blamed_on_a_package(small: Path) -> None:
    wheel = make_wheel(small.parent, {"demo_thing/data": "0" * 6_000_000})
    env = {**os.environ, "TMPDIR": str(small)}
    done = run_torchyard(["smoke", wheel, "--installer", "uv"], env)
    assert done.returncode == ElsewhereError.exit_code, done.stderr
    assert "set TMPDIR" in done.stderr


BYTES = {6: bytes(6_000_000), 12: bytes(12_000_000)}
"""More than a small disk holds: as much as is sent at once, and more than that."""


def big_project(folder: Path, megabytes: int, *changes: tuple[str, str]) -> Path:
    """A project whose core is too big for a small disk."""
    text = WORKS
    for old, new in (
        (COMPILE, f"head -c {megabytes}000000 /dev/zero > {{out}}/lib/core.bin"),
        *changes,
    ):
        assert old in text
        text = text.replace(old, new)
    return make_project(folder, text)


@pytest.mark.parametrize("megabytes", [6, 12])
def test_a_store_that_is_full(
    torchyard: Command, tmp_path: Path, small: Path, megabytes: int
) -> None:
    file = big_project(tmp_path / "project", megabytes)
    args = ("-f", file, "--store", small / "store")
    assert torchyard("run", SOURCE, *args).code == 0
    failed = torchyard("run", CORE, *args)
    assert failed.code == 75
    assert f"the store `{small}/store` could not" in failed.err
    assert "No space left on device" in failed.err
    assert "make room: `torchyard store gc`" in failed.err
    store = Store.at(str(small / "store"))
    assert verify(store).is_clean
    assert [found.id for found in store.results()] == [SOURCE]
    assert list(store.objects.leftovers()) == []
    assert list(store.objects.list("claims/")) == []

    make_room(small)
    again = torchyard("run", CORE, *args)
    assert again.code == 0
    assert "compile" not in again.err, "what was done is not done again"
    assert verify(store).is_clean
    assert (core_of(store, tmp_path / "got") == BYTES[megabytes]) is True


NOISY = (COMPILE, f"seq -f %0100.0f 60000; {COMPILE}")


@pytest.mark.slow
@pytest.mark.parametrize("who", ["the step", "the log", "the input", "the source", "ninja"])
def test_a_work_directory_that_is_full(
    torchyard: Command, tmp_path: Path, small: Path, who: str
) -> None:
    """Whoever hits the end of the disk first: torchyard says that it is the disk."""
    config = tmp_path / "project"
    file = (
        make_project(config, WORKS.replace(*NOISY)) if who == "the log" else big_project(config, 6)
    )
    if who == "the source":
        (config / "code/big.txt").write_bytes(BYTES[6])
    failing = {"the input": BINDINGS, "the source": SOURCE}.get(who, CORE)
    for name in JOBS[: JOBS.index(failing)]:
        assert torchyard("run", name, "-f", file).code == 0
    if who == "ninja":
        resize(small, "100k")
    command = ("run", failing, "-f", file, "--work", small)
    failed = torchyard(*command)
    assert failed.code == 75, failed.err
    assert "No space left on device" in failed.err
    assert who == "the step" or "make room" in failed.err
    told = torchyard(*command, "--json")
    assert told.code == 75
    assert json.loads(told.out.splitlines()[-1])["reason"] == "disk"
    store = Store.at(str(config / ".torchyard/store"))
    assert verify(store).is_clean
    assert failing not in [found.id for found in store.results()]

    make_room(small)
    again = torchyard(*command)
    assert again.code == 0, again.err
    assert [path.name for path in small.iterdir()] == [".torchyard-stamp"], "nothing is left behind"
    for name in JOBS:
        assert torchyard("run", name, "-f", file).code == 0
    assert verify(store).is_clean
    right = b"some code\nmore code\n" if who == "the log" else BYTES[6]
    assert core_of(store, tmp_path / "got") == right


def test_half_a_ninja_is_not_used(torchyard: Command, tmp_path: Path, small: Path) -> None:
    file = make_project(tmp_path, WORKS.replace(LIST, "ninja --version > {out}/listing"))
    assert torchyard("run", SOURCE, "-f", file).code == 0
    resize(small, "100k")
    assert torchyard("run", CORE, "-f", file, "--work", small).code == 75
    assert not list(small.rglob("tools/ninja"))
    make_room(small)
    again = torchyard("run", CORE, "-f", file, "--work", small)
    assert again.code == 0, again.err


def test_a_step_on_a_disk_that_is_full(torchyard: Command, tmp_path: Path) -> None:
    """There is room where the job works, but not where its step writes."""
    file = make_project(tmp_path, WORKS.replace(LIST, "cat {out}/lib/core.bin > /dev/full"))
    assert torchyard("run", SOURCE, "-f", file).code == 0
    failed = torchyard("run", CORE, "-f", file, "--json")
    assert failed.code == 75
    assert json.loads(failed.out.splitlines()[-1])["reason"] == "disk"
    assert "No space left on device" in failed.err
    assert "Disk (often /tmp) is full" in failed.err


def test_an_orphan_is_not_left_by_a_full_disk(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at the moment in which the step's process is written down."""
    file = make_project(tmp_path, WORKS.replace(LIST, "echo $$ > {out}/pid; sleep 100"))
    assert torchyard("run", SOURCE, "-f", file).code == 0
    save, groups = WorkDir.save, []

    def fail(place: WorkDir, state: JobState) -> None:
        if state.group is not None and state.steps:
            groups.append(state.group)
            raise OSError(errno.ENOSPC, "No space left on device")
        save(place, state)

    monkeypatch.setattr(WorkDir, "save", fail)
    assert torchyard("run", CORE, "-f", file).code == 75
    wait_for(lambda: not group_is_running(groups[0]))


def test_a_source_that_was_taken_by_half_is_taken_anew(tmp_path: Path) -> None:
    repository, to = tmp_path / "repository", tmp_path / "to"
    repository.mkdir()
    (repository / "a.txt").write_text("some code", encoding="utf-8")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    commit = capture(["git", "rev-parse", "HEAD"], cwd=repository).strip()
    to.mkdir()
    capture(["git", "init", "-q"], cwd=to)
    capture(["git", "remote", "add", "origin", "file:///nowhere"], cwd=to)
    (to / "half").touch()
    check_out(f"file://{repository}", commit, to, submodules=False)
    assert [path.name for path in to.iterdir()] == ["a.txt"]
    (to / "half").touch()
    copy_folder(repository, read_source_tree(str(repository)).digest, to, ())
    assert [path.name for path in to.iterdir()] == ["a.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["store", "work", "home"])
def test_a_build_on_a_full_disk_ends(tmp_path: Path, small: Path, what: str) -> None:
    resize(small, "60m")  # a build is refused on a disk with less than 50 MB
    config = small if what == "home" else tmp_path / "project"
    file = big_project(config, 64)
    place = ("--store", tmp_path / "store") if what == "home" else (f"--{what}", small / what)
    code, out, err = build(file, "core:*", *place)
    assert code == 75, err
    assert "No space left on device" in err
    assert outcomes(out)["retry"] == 0
    where = {"store": small / "store", "work": config / ".torchyard/store"}
    store = Store.at(str(where.get(what, tmp_path / "store")))
    assert verify(store).is_clean

    make_room(small)
    code, out, err = build(file, "core:*", *place)
    assert code == 0, err
    assert verify(store).is_clean
    assert len(list(store.fingerprints())) == 2
    assert (core_of(store, tmp_path / "got") == bytes(64_000_000)) is True


# -------------------------------------------------------------------------- failing stores


def kind_of(request: Request) -> str:
    """What a request is for: `PUT results`, `LIST sweeps`, `POST delete` …"""
    if request.method == "POST":
        return "POST delete" if request.path.endswith("?delete") else "POST upload"
    method = "LIST" if "list-type=" in request.path else request.method
    folder = re.search(r"(blobs|results|pins|claims|sweeps)(/|%2F)", request.path)
    return f"{method} {folder[1] if folder else 'other'}"


def each_kind(fault: Fault, times: int = 1) -> Plan:
    """Plan that the first requests of every kind fail."""
    seen: Counter[str] = Counter()

    def plan(request: Request) -> Fault:
        seen[kind_of(request)] += 1
        return fault if seen[kind_of(request)] <= times else Fault.NONE

    return plan


def now_and_then() -> Plan:
    """Plan that every sixth request fails, in a random way."""
    dice = random.Random(0)  # noqa: S311
    faults = [fault for fault in Fault if fault not in (Fault.NONE, Fault.SILENCE)]
    return lambda _: dice.choice(faults) if dice.random() < 1 / 6 else Fault.NONE


def always(fault: Fault, *kinds: str) -> Plan:
    """Plan that all requests fail, or all of some kinds."""
    return lambda request: fault if not kinds or kind_of(request) in kinds else Fault.NONE


PLANS: dict[str, Callable[[], Plan]] = {
    "bursts of 503": lambda: each_kind(Fault.SLOW_DOWN, 2),
    "500": lambda: each_kind(Fault.INTERNAL_ERROR),
    "silence": lambda: each_kind(Fault.SILENCE),
    "lost requests": lambda: each_kind(Fault.LOSE_REQUEST),
    "torn requests": lambda: each_kind(Fault.TEAR_REQUEST),
    "lost answers": lambda: each_kind(Fault.LOSE_ANSWER),
    "cut answers": lambda: each_kind(Fault.CUT_ANSWER),
    "all of them": now_and_then,
}
SLOW_PLANS: dict[str, Callable[[], Plan]] = {
    "long bursts of 503": lambda: each_kind(Fault.SLOW_DOWN, 8),
    "many cut answers": lambda: each_kind(Fault.CUT_ANSWER, 4),
    "much silence": lambda: each_kind(Fault.SILENCE, 3),
}


class Faulty(NamedTuple):
    """A place for a store behind a proxy, and what belongs to it."""

    place: Place
    proxy: FaultyProxy
    patch: pytest.MonkeyPatch

    @property
    def url(self) -> str:
        return self.place.url

    def store(self) -> Store:
        return Store.at(self.url)

    def reach_at(self, endpoint: str) -> None:
        for name, value in self.place.behind(endpoint).environment.items():
            self.patch.setenv(name, value)

    def give_up_after(self, seconds: float) -> None:
        self.patch.setattr(retries, "PATIENCE", seconds)

    def bear_silence(self, seconds: float) -> None:
        self.patch.setattr(bucket, "SILENCE", seconds)


@pytest.fixture
def faulty(s3_place: Place, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> Faulty:
    """Give a place for requests that are soon given up."""
    found = Faulty(s3_place, s3_proxy, monkeypatch)
    found.give_up_after(15)
    found.reach_at(s3_proxy.endpoint)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*PLANS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_PLANS)]
)
def test_faults_that_pass(torchyard: Command, tmp_path: Path, faulty: Faulty, name: str) -> None:
    """Each thing that is done meets them anew, in every kind of request that it makes."""
    plan = (PLANS | SLOW_PLANS)[name]
    if "silence" in name:
        faulty.bear_silence(0.2)
    file = make_project(tmp_path)
    faulty.proxy.plan = plan()
    for one in (SOURCE, CORE):
        done = torchyard("run", one, "-f", file, "--store", faulty.url)
        assert done.code == 0, done.err
        assert done.err.splitlines()[-1].startswith("built"), "ours, whatever became of answers"
    store, away = faulty.store(), Store.at(f"{faulty.url}-copy")
    faulty.proxy.plan = plan()
    names = list(store.fingerprints())
    assert len(names) == 2
    assert store.known({*names, "0" * 64}) == set(names)
    lone = store_result(store, tmp_path, task_of("lone"), one="unwanted")
    faulty.proxy.plan = plan()
    assert remove_garbage(store, names, NO_TIME).results == {lone.fingerprint: lone.id}
    assert verify(store).is_clean
    faulty.proxy.plan = plan()
    assert copy(store, away, store.results()).results == 2
    assert core_of(away, tmp_path / "got") == b"some code\nmore code\n"
    faulty.proxy.plan = no_fault
    for there in (store, away):
        verdict = verify(there)
        assert (verdict.is_clean, verdict.results) == (True, 2)
        assert not list(there.objects.list("claims/"))
        assert not list(there.objects.list("sweeps/active/"))


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.CUT_ANSWER])
def test_what_we_wrote_is_ours_even_if_nobody_says_so(
    tmp_path: Path, faulty: Faulty, fault: Fault
) -> None:
    store = faulty.store()
    task, other = task_of("one"), task_of("two")
    path = tmp_path / "file"
    path.write_text("bytes", encoding="utf-8")
    writers = [Writer(store) for _ in range(8)]
    logs = [writer.add_file(path, "log.gz") for writer in writers]

    def publish(number: int) -> bool:
        result = Result(
            fingerprint=other.fingerprint,
            spec=JobSpec(tasks=(other,)),
            log=logs[number],
            run=f"{number}",
        )
        return writers[number].publish(result)

    faulty.proxy.plan = each_kind(fault, 3)
    assert store.objects.create(claim_key(task.fingerprint), b"mine")
    assert not store.objects.create(claim_key(task.fingerprint), b"yours")
    faulty.proxy.plan = each_kind(fault, 6)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(publish, range(8)))
    assert won.count(True) == 1
    found = store.find(other.fingerprint)
    assert found is not None
    assert found.run == str(won.index(True))


def test_a_big_blob_is_read_in_many_tries(tmp_path: Path, faulty: Faulty) -> None:
    """Each answer breaks off, more often than one request is tried again."""
    store = faulty.store()
    path = tmp_path / "file"
    path.write_bytes(os.urandom(3 << 20))
    file = Writer(store).add_file(path, "file")
    faulty.proxy.plan = each_kind(Fault.CUT_ANSWER, 10)
    pieces = list(store.objects.stream(f"blobs/{file.digest[:2]}/{file.digest}"))
    assert b"".join(pieces) == path.read_bytes()
    assert faulty.proxy.counts["GET"] > 10


@pytest.mark.slow
def test_a_listing_that_breaks_off_hides_nothing_from_gc(tmp_path: Path, faulty: Faulty) -> None:
    """More results than one page holds, every page cut: all that they need is kept."""
    faulty.reach_at(faulty.place.endpoint)
    direct = faulty.store()
    faulty.reach_at(faulty.proxy.endpoint)
    path = tmp_path / "file"

    def manifest(number: int) -> str:
        task = task_of(f"{number}")
        blob = tmp_path / f"{number}"
        blob.write_text(f"{number // 50}", encoding="utf-8")
        log = writer.add_file(blob, "log.gz")
        result = Result(fingerprint=task.fingerprint, spec=JobSpec(tasks=(task,)), log=log)
        direct.objects.write(result_key(task.fingerprint), canonical_json(result))
        return task.fingerprint

    writer = Writer(direct)
    with ThreadPoolExecutor(16) as pool:
        expected = set(pool.map(manifest, range(1050)))
    path.write_text("unwanted", encoding="utf-8")
    lone = writer.add_file(path, "lone")

    cut: Counter[str] = Counter()

    def plan(request: Request) -> Fault:
        """Cut every page twice, in the middle: the first ones and those behind them."""
        if kind_of(request) != "LIST results":
            return Fault.NONE
        cut[request.path] += 1
        return Fault.CUT_ANSWER if cut[request.path] <= 2 else Fault.NONE

    faulty.proxy.plan = plan
    store = faulty.store()
    garbage = remove_garbage(store, expected, NO_TIME)
    assert garbage.results == {}
    assert {key.rpartition("/")[2] for key in garbage.blobs} == {lone.digest}
    assert len(cut) >= 2
    cut.clear()
    assert store.known(expected) == expected
    verdict = verify(direct)
    assert (verdict.is_clean, verdict.results) == (True, 1050)


@pytest.mark.parametrize("broken", ["LIST results", "GET results", "LIST pins", "LIST blobs"])
def test_a_gc_that_cannot_see_all_removes_nothing(
    tmp_path: Path,
    faulty: Faulty,
    broken: str,
) -> None:
    faulty.give_up_after(0.5)
    store = faulty.store()
    store_result(store, tmp_path, task_of("lone"), one="unwanted")
    faulty.proxy.plan = always(Fault.CUT_ANSWER, broken)
    with pytest.raises(ElsewhereError):
        remove_garbage(store, set(), NO_TIME)
    faulty.proxy.plan = no_fault
    verdict = verify(store)
    assert (verdict.is_clean, verdict.results) == (True, 1)


LONG = 600
"""Seconds: nothing takes so long that is not waited for."""

DEAD_STORES = (Fault.SLOW_DOWN, Fault.SILENCE, Fault.LOSE_REQUEST, None)
"""All kinds of no answer; None stands for a port at which nobody listens."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", DEAD_STORES)
def test_a_store_that_is_gone(
    torchyard: Command, tmp_path: Path, faulty: Faulty, fault: Fault | None
) -> None:
    faulty.give_up_after(1)
    faulty.bear_silence(0.2)
    command = ("run", SOURCE, "-f", make_project(tmp_path), "--store", faulty.url)
    lose(faulty, fault)
    began = time.monotonic()
    failed = torchyard(*command)
    assert time.monotonic() - began < PATIENCE
    assert failed.code == 75
    assert f"the store `{faulty.url}` could not read results/" in failed.err
    assert "is it reachable" in failed.err
    faulty.proxy.plan = no_fault
    faulty.bear_silence(SILENCE)
    faulty.reach_at(faulty.proxy.endpoint)
    assert torchyard(*command).code == 0
    assert verify(faulty.store()).is_clean


def lose(faulty: Faulty, fault: Fault | None) -> None:
    if fault is None:
        faulty.reach_at("http://127.0.0.1:9")
    else:
        faulty.proxy.plan = always(fault)


def test_what_will_not_pass_is_not_waited_for(
    torchyard: Command, tmp_path: Path, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_project(tmp_path)
    faulty.give_up_after(LONG)
    began = time.monotonic()
    nowhere = torchyard("store", "verify", "-f", file, "--store", "s3://no-such-bucket/x")
    assert (nowhere.code, "NoSuchBucket" in nowhere.err) == (75, True)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refused = torchyard("run", SOURCE, "-f", file, "--store", faulty.url)
    assert (refused.code, "SignatureDoesNotMatch" in refused.err) == (75, True)
    assert time.monotonic() - began < LONG


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["PUT blobs", "PUT results", "LIST sweeps"])
@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.LOSE_ANSWER])
def test_a_store_that_goes_while_a_job_runs(
    torchyard: Command,
    tmp_path: Path,
    faulty: Faulty,
    broken: str,
    fault: Fault,
) -> None:
    """What was compiled is not lost: the next try only has to store it."""
    faulty.give_up_after(0.5)
    file = make_project(tmp_path, WORKS.replace(LIST, f"echo run >> {tmp_path}/runs; {LIST}"))
    args = ("-f", file, "--store", faulty.url)
    assert torchyard("run", SOURCE, *args).code == 0
    faulty.proxy.plan = always(fault, broken)
    failed = torchyard("run", CORE, *args)
    store = faulty.store()
    assert failed.code == 75
    assert f"the store `{faulty.url}` could not" in failed.err
    faulty.proxy.plan = no_fault
    assert verify(store).is_clean
    assert not list(store.objects.list("claims/"))
    assert torchyard("run", CORE, *args).code == 0
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "run\n"
    assert verify(store).is_clean
    assert core_of(store, tmp_path / "got") == b"some code\nmore code\n"


def test_a_result_counts_although_its_claim_cannot_be_given_up(
    torchyard: Command,
    tmp_path: Path,
    faulty: Faulty,
) -> None:
    faulty.give_up_after(0.5)
    file = make_project(tmp_path)
    faulty.proxy.plan = always(Fault.SLOW_DOWN, "POST delete")
    done = torchyard("run", SOURCE, "-f", file, "--store", faulty.url)
    assert done.code == 0, done.err
    assert verify(faulty.store()).results == 1


def test_a_claim_outlives_a_store_that_is_away(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.give_up_after(0.2)
    monkeypatch.setattr(claims, "BEAT", 0.1)
    store = faulty.store()
    with claims.Claim(store.objects, "a" * 64) as mine:
        assert mine.take() is None
        faulty.proxy.plan = always(Fault.SLOW_DOWN, "PUT claims")
        seen = len(faulty.proxy.requests)
        wait_for(lambda: len(faulty.proxy.requests) > seen + 20)  # more than one beat's tries
        faulty.proxy.plan = no_fault
        before = claims.read_owner(store.objects, claim_key("a" * 64))
        assert before is not None
        wait_for(lambda: claims.read_owner(store.objects, claim_key("a" * 64)) != before)


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def test_a_sweep_ends_before_others_take_it_for_dead() -> None:
    longest = retries.PATIENCE + bucket.SILENCE
    assert gc_lease.ASLEEP + longest < gc_lease.DEAD


def test_a_sweep_whose_sign_of_life_took_too_long_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.at(str(tmp_path))
    going = gc_lease.GcLease(store.objects)
    with going:
        monkeypatch.setattr(gc_lease, "BEAT", 0.0)
        monkeypatch.setattr(gc_lease, "ASLEEP", 0.1)
        write = store.objects.write

        def slow(key: str, data: bytes | Path) -> None:
            write(key, data)
            time.sleep(0.2)

        monkeypatch.setattr(store.objects, "write", slow)
        with pytest.raises(ElsewhereError, match="stood still"):
            going.beat()


def test_a_gc_may_take_longer_than_a_sweep_may_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc_lease, "BEAT", 0.05)
    monkeypatch.setattr(gc_lease, "ASLEEP", 3.0)
    store = Store.at(str(tmp_path / "store"))
    lone = {store_result(store, tmp_path, task_of(f"{n}")).fingerprint for n in range(60)}
    find = store.find

    def slow(fingerprint: str) -> Result | None:
        time.sleep(1)
        return find(fingerprint)

    monkeypatch.setattr(store, "find", slow)
    assert set(remove_garbage(store, set(), NO_TIME).results) == lone


@pytest.mark.slow
@pytest.mark.parametrize("fault", DEAD_STORES)
def test_how_long_a_store_that_is_gone_is_waited_for(
    torchyard: Command, tmp_path: Path, faulty: Faulty, fault: Fault | None
) -> None:
    """With the times that users have: about a minute, never more than two."""
    faulty.give_up_after(PATIENCE)
    lose(faulty, fault)
    began = time.monotonic()
    command = ("run", SOURCE, "-f", make_project(tmp_path), "--store", faulty.url)
    assert torchyard(*command).code == 75
    assert 55 < time.monotonic() - began < 120


# -------------------------------------------------------- a store that goes during a build


@pytest.fixture
def hasty(tmp_path: Path) -> dict[str, str]:
    """Give an environment in which torchyard's processes soon give a store up."""
    folder = tmp_path / "hasty"
    folder.mkdir()
    text = "from torchyard.store import retries\nretries.PATIENCE = 1.0\n"
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    paths = (str(folder), str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextmanager
def started(
    file: Path, *args: str, place: Place, env: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Begin a build, and wait until its core is being compiled."""
    env = {**place.environment, **env}
    with start_build(file, *args, "--store", place.url, env=env) as process:
        try:
            wait_for((file.parent / "begun").exists)
            yield process
        finally:
            process.kill()


def slow_yard(folder: Path) -> Path:
    """A project whose core tells that it begins, and then takes its time."""
    told = f"echo run >> {folder}/begun; sleep 2; {LIST}"
    return make_project(folder, WORKS.replace(LIST, told))


@pytest.fixture
def port() -> Iterator[int]:
    """Keep a port at which proxies come and go."""
    with reserved_port() as port:
        yield port


@pytest.mark.slow
def test_a_build_recovers_from_a_store_that_was_away(
    tmp_path: Path, s3_server: S3Server, s3_place: Place, port: int
) -> None:
    """It is gone when the core is to be stored, and comes back at the same address."""
    file = slow_yard(tmp_path)
    with FaultyProxy(s3_server.endpoint, port) as proxy:
        place = s3_place.behind(proxy.endpoint)
        build_of = started(file, "core:*", place=place, env={})
        process = build_of.__enter__()
    try:
        time.sleep(4)
        with FaultyProxy(s3_server.endpoint, port):
            out, err = process.communicate(timeout=300)
    finally:
        build_of.__exit__(None, None, None)
    assert process.returncode == 0, err
    assert outcomes(out) == {"built": 2}
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "run\n"
    check_store(s3_place, tmp_path)


@pytest.mark.slow
def test_a_job_is_tried_again_whose_input_came_back_before_anybody_looked(
    tmp_path: Path, s3_proxy: FaultyProxy, s3_place: Place
) -> None:
    """Another job had found before that it was gone, and it was just made again."""
    file, objects = make_project(tmp_path), s3_place.store()
    place = s3_place.behind(s3_proxy.endpoint)
    assert build(file, "core:*", "--store", place.url, env=place.environment)[0] == 0
    kept: list[tuple[str, bytes]] = []

    def hide_once(request: Request) -> Fault:
        if kept and "/results/" in request.path:
            obstore.put(objects, *kept.pop())  # the engine looks: it is there
            s3_proxy.plan = no_fault
        elif request.method == "GET" and f"/{key}" in request.path:
            kept.append((key, bytes(obstore.get(objects, key).bytes())))
            obstore.delete(objects, key)  # the job looks: it is gone
        return Fault.NONE

    key = result_key(result_of(CORE, s3_place).fingerprint)
    s3_proxy.plan = hide_once
    words = ("--jobs", "1", "--store", place.url)
    code, out, err = build(file, "bindings:*", *words, env=place.environment)
    assert code == 0, err
    assert outcomes(out) == {"retry": 1, "built": 2}


def result_of(job: str, place: Place) -> Result:
    """What a store has of a job."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in place.environment.items():
            patch.setenv(name, value)
        (found,) = [result for result in Store.at(place.url).results() if result.id == job]
    return found


def check_store(place: Place, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in place.environment.items():
            patch.setenv(name, value)
        store = Store.at(place.url)
        verdict = verify(store)
        assert (verdict.is_clean, verdict.results) == (True, 2)
        assert core_of(store, folder / "got") == b"some code\nmore code\n"


@pytest.mark.slow
def test_a_build_whose_store_stays_away_goes_on_later(
    tmp_path: Path, s3_server: S3Server, s3_place: Place, hasty: dict[str, str], port: int
) -> None:
    file = slow_yard(tmp_path)
    with FaultyProxy(s3_server.endpoint, port) as proxy:
        place = s3_place.behind(proxy.endpoint)
        build_of = started(file, "core:*", place=place, env=hasty)
        process = build_of.__enter__()
    try:
        _, err = process.communicate(timeout=300)
    finally:
        build_of.__exit__(None, None, None)
    assert process.returncode == 75, err
    assert f"the store `{place.url}` could not" in err
    with FaultyProxy(s3_server.endpoint, port):
        env = {**place.environment, **hasty}
        code, out, err = build(file, "core:*", "--store", place.url, env=env)
    assert code == 0, err
    assert outcomes(out) == {"built": 1}, "the source is there"
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "run\n", "nothing is done twice"
    check_store(s3_place, tmp_path)


@pytest.mark.slow
def test_jobs_go_on_while_the_engine_cannot_reach_the_store(
    tmp_path: Path, s3_place: Place, s3_proxy: FaultyProxy, hasty: dict[str, str]
) -> None:
    """Two cores; while one is compiled, the store is away too long to begin anything else."""
    text = WORKS.replace('"openblas"', '"openblas", "mkl"')
    slow = (
        f"echo run >> {tmp_path}/begun; while test ! -e {tmp_path}/go; do sleep 0.1; done; {LIST}"
    )
    file = make_project(tmp_path, text.replace(LIST, slow))
    place = s3_place.behind(s3_proxy.endpoint)
    args = ("core:*", "--slots", "2", "--jobs", "2")
    s3_proxy.plan = one_job_then_none()
    with started(file, *args, place=place, env=hasty) as process:
        seen = s3_proxy.counts["HEAD"]
        wait_for(lambda: s3_proxy.counts["HEAD"] > seen + 20)  # given up more than once
        s3_proxy.plan = no_fault
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert outcomes(out) == {"built": 3}
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "run\n" * 2


@pytest.mark.slow
def test_jobs_go_on_if_the_store_is_away_when_an_input_is_looked_for(
    tmp_path: Path, s3_proxy: FaultyProxy, s3_place: Place, hasty: dict[str, str]
) -> None:
    """Two jobs need a core; one has it and runs, and when the other asks, it is gone."""
    wait = f"echo run >> {tmp_path}/begun; until test -e {tmp_path}/go; do sleep 0.1; done; cat"
    file = make_project(tmp_path, WORKS.replace("cat {core}", f"{wait} {{core}}"))
    place = s3_place.behind(s3_proxy.endpoint)
    assert build(file, "core:*", "--store", place.url, env=place.environment)[0] == 0
    key = result_key(result_of(CORE, s3_place).fingerprint)
    asked = 0

    def plan(request: Request) -> Fault:
        nonlocal asked
        if request.method == "GET" and f"/{key}" in request.path:
            asked += 1
            if asked == 2:
                obstore.delete(s3_place.store(), key)
        return Fault.SLOW_DOWN if request.method == "HEAD" and asked == 2 else Fault.NONE

    s3_proxy.plan = plan
    words = ("bindings:*", "--slots", "2", "--jobs", "2")
    with started(file, *words, place=place, env=hasty) as process:
        seen = s3_proxy.counts["HEAD"]
        wait_for(lambda: s3_proxy.counts["HEAD"] > seen + 20 or process.poll() is not None)
        s3_proxy.plan = no_fault
        (tmp_path / "go").touch()
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert outcomes(out) == {"retry": 2, "built": 3}


def one_job_then_none() -> Plan:
    """Plan that the engine can ask about the jobs of its plan, the source and one core."""
    asked = 0

    def plan(request: Request) -> Fault:
        nonlocal asked
        asked += kind_of(request) == "HEAD results"
        return Fault.SLOW_DOWN if request.method == "HEAD" and asked > 3 + 2 else Fault.NONE

    return plan


# --------------------------------------------------------------------------- jumping clocks


FAR = (timedelta(days=-9000), timedelta(), timedelta(days=20000))


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the wall clock jump by decades whenever somebody looks at it."""
    jumps = cycle(FAR)
    right = time.time

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(right(), tz) + next(jumps)

    monkeypatch.setattr(time, "time", lambda: right() + next(jumps).total_seconds())
    for module in (job, log, clock):
        monkeypatch.setattr(module, "datetime", Jumping)


def stamps(text: str) -> list[str]:
    return [line.partition(" ")[0] for line in text.splitlines()]


def test_only_what_people_read_looks_at_the_wall_clock() -> None:
    """No result depends on it: there are a steady clock, and the store's own."""
    found = {
        path.relative_to(ROOT / "src/torchyard").as_posix()
        for path in (ROOT / "src/torchyard").rglob("*.py")
        if re.search(
            r"time\.time|import time\b.*\btime\(|from time import|\.(utc)?now\(|today\(",
            path.read_text(encoding="utf-8"),
        )
    }
    assert found == {
        "features/status/report.py",  # how long ago that was
        "workspace/clock.py",  # whether what was allowed up to a day still is
        "cli/build_display.py",  # times that GitLab wants in its log
        "run/job.py",  # when a result's job started
        "run/log.py",  # times of lines
        "run/cleanup.py",  # how old the work of failed jobs is
        "run/kept_build.py",  # when a file was edited, for ninja
        "doctor/checks/network.py",  # whether it is right
    }


@pytest.mark.slow
def test_results_are_right_whatever_the_clock_says(
    torchyard: Command, tmp_path: Path, jumping: None
) -> None:
    file = make_project(tmp_path / "project")
    for name in JOBS:
        assert torchyard("run", name, "-f", file).code == 0
    store = Store.at(str(tmp_path / "project/.torchyard/store"))
    assert verify(store).is_clean
    assert core_of(store, tmp_path / "got") == b"some code\nmore code\n"
    for found in store.results():
        assert 0 <= found.seconds < 3600
        text = torchyard("store", "show", found.id, "--log", "-f", file).out
        assert text
        assert stamps(text) == sorted(stamps(text))
    assert torchyard("build", "-f", file, "--json").code == 0
    assert torchyard("status", "-f", file).code == 0


def test_a_log_that_is_continued_never_goes_back(tmp_path: Path, jumping: None) -> None:
    path = tmp_path / "log"
    for number in range(7):  # the clock goes forwards and backwards between runs
        with log.Log(path) as lines:
            lines.add(f"run {number}")
            lines.add("x" * 100_000)
        with path.open("ab") as file:
            file.write(b"2026-01-01" if number % 2 else b"")  # a line that a full disk cut
    text = path.read_text(encoding="utf-8")
    whole = [line for line in text.splitlines() if line != "2026-01-01"]
    assert len(whole) == 14
    moments = [datetime.fromisoformat(line[: log.STAMP - 1]) for line in whole]
    assert moments == sorted(moments)


def test_claims_do_not_care_about_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jumping: None
) -> None:
    store = Store.at(str(tmp_path))
    monkeypatch.setattr(claims, "BEAT", 0.05)
    monkeypatch.setattr(claims, "DEAD", 3.0)
    patience = claims.ClaimMonitor(store.objects)
    with monkeypatch.context() as patch:
        patch.setattr(platform, "node", lambda: "elsewhere")
        alive = claims.Claim(store.objects, "a" * 64)
        dead = claims.Owner(name="dead", host="elsewhere", pid=1)
    store.objects.write(claim_key("b" * 64), msgspec.json.encode(dead))
    with alive:
        assert alive.take() is None
        began = time.monotonic()
        while patience.holder("b" * 64) is not None:
            assert patience.holder("a" * 64) is not None
            assert time.monotonic() - began < 60, "no wait becomes endless"
            time.sleep(0.02)
        assert time.monotonic() - began >= 3
        assert patience.holder("a" * 64) is not None


def test_gc_goes_by_the_clock_of_the_server(tmp_path: Path, faulty: Faulty, jumping: None) -> None:
    store = faulty.store()
    result = store_result(store, tmp_path, task_of("young"), one="1")
    assert remove_garbage(store, set(), timedelta(hours=1)).results == {}
    assert verify(store).results == 1
    assert set(remove_garbage(store, set(), NO_TIME).results) == {result.fingerprint}


def date_everything(folder: Path, year: int) -> None:
    moment = datetime(year, 1, 1, tzinfo=UTC).timestamp()
    for path in folder.rglob("*"):
        os.utime(path, (moment, moment))


@pytest.mark.parametrize("year", [1971, 2200])
def test_gc_in_a_directory_whose_clock_jumped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    """All files are of another century, as after a jump of the file system's clock."""
    monkeypatch.setattr(claims, "BEAT", 0.05)
    monkeypatch.setattr(claims, "DEAD", 3.0)
    store = Store.at(str(tmp_path / "store"))
    wanted = store_result(store, tmp_path, task_of("wanted"), one="1", two="shared")
    lone = store_result(store, tmp_path, task_of("lone"), one="3", two="shared")
    leftover = tmp_path / "store/blobs/leftover#1"
    leftover.write_text("half", encoding="utf-8")
    dead = claims.Owner(name="dead", host="elsewhere", pid=1)
    store.objects.write(claim_key("b" * 64), msgspec.json.encode(dead))
    other = gc_lease.GcLease(store.objects)
    with claims.Claim(store.objects, "a" * 64) as alive, other:
        assert alive.take() is None
        date_everything(tmp_path / "store", year)
        watch = watching(store, claim_key("a" * 64))
        remove_garbage(store, {wanted.fingerprint}, timedelta(hours=1))
        assert watch(), "the claim of a living process was there all the time"
        assert len(list(store.objects.list("sweeps/active/"))) == 1
    assert store.has(wanted.fingerprint)
    is_old = year < 2000
    assert store.has(lone.fingerprint) is not is_old
    assert leftover.exists() is not is_old
    assert (store.objects.head(claim_key("b" * 64)) is None) is is_old
    assert verify(store).is_clean


def watching(store: Store, key: str) -> Callable[[], bool]:
    """Look at an object again and again; the function that is returned tells if it was there."""
    ended, missed = threading.Event(), threading.Event()

    def look() -> None:
        while not ended.wait(0.005):
            if store.objects.head(key) is None:
                missed.set()

    thread = threading.Thread(target=look)
    thread.start()

    def was_there() -> bool:
        ended.set()
        thread.join()
        return not missed.is_set() and store.objects.head(key) is not None

    return was_there


def test_a_writer_whose_leftovers_vanish_does_not_disturb_gc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.at(str(tmp_path / "store"))
    result = store_result(store, tmp_path, task_of("one"), one="1")
    part = tmp_path / "store/blobs/part#1"
    part.write_text("half", encoding="utf-8")
    walk = os.walk

    def late(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for found in list(walk(folder)):
            part.unlink(missing_ok=True)
            yield found

    monkeypatch.setattr(os, "walk", late)
    assert remove_garbage(store, {result.fingerprint}, NO_TIME).leftovers == {}


@pytest.mark.parametrize("year", [1971, 2200])
def test_a_writer_heals_what_looked_old(tmp_path: Path, year: int) -> None:
    """The clock jumps after blobs were sent, and a collection comes before their manifest."""
    store = Store.at(str(tmp_path / "store"))
    path = tmp_path / "file"
    path.write_text("bytes", encoding="utf-8")
    task = task_of("one")
    writer = Writer(store)
    file = writer.add_file(path, "log.gz")
    date_everything(tmp_path / "store", year)
    remove_garbage(store, set(), timedelta(hours=1))
    assert writer.publish(
        Result(fingerprint=task.fingerprint, spec=JobSpec(tasks=(task,)), log=file)
    )
    assert verify(store).is_clean
