"""Many use a channel at once: they publish, delete, are slow or are killed, and others read.

A reader follows every link of every page all the while, and compares hashes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import msgspec
import psutil
import pytest
from packaging.version import Version
from tests.integration import test_crash as crash
from tests.integration.test_crash import Stock, Zygote
from tests.support.channel_deeds import DEEDS, LATER, ROUNDS, SEVERAL, round_of
from tests.support.channel_reader import Reader, assert_right, only_more, read_all, told, watched
from tests.support.channels import put, wheel
from tests.support.crash_driver import Deed, Kill, Moment, channel_deed
from tests.support.services import Nginx

from torchyard.host.locks import locked
from torchyard.publish.channel.channel import Channel
from torchyard.store import objects

pytestmark = pytest.mark.integration

stock, zygote = crash.stock, crash.zygote


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory for the driver."""
    return tmp_path / "work"


def competitors(folder: Path, url: str, names: range) -> list[Deed]:
    """Several who publish, each several times."""
    return [channel_deed("compete", folder / str(name), url, str(name)) for name in names]


def at_once(deeds: Sequence[Deed], kills: Sequence[Kill] = ()) -> None:
    """Do deeds in processes of their own; the first ones are killed before."""
    with ExitStack() as stack, ThreadPoolExecutor(len(deeds)) as pool:
        zygotes = [stack.enter_context(crash.started()) for _ in deeds]
        list(pool.map(insist, zygotes, deeds, [*kills, *[None] * (len(deeds) - len(kills))]))


def insist(zygote: Zygote, deed: Deed, kill: Kill | None) -> None:
    if kill is not None:
        zygote.die(msgspec.structs.replace(deed, folder=f"{deed.folder}-killed"), kill)
    zygote.succeed(deed)


def check_competition(url: str, count: int) -> None:
    channel = Channel.at(url)
    head = channel.head()
    assert head.generation == count * ROUNDS
    assert [change.generation for change in head.log] == [*range(1, count * ROUNDS + 1)]
    files = {entry.file for part in head.parts for entry in channel.state(head, part).entries}
    assert files == {
        made.entry.file
        for name in range(count)
        for number in range(ROUNDS)
        for made in round_of(str(name), number)
    }
    assert_right(channel)
    states = {state for change in head.log for _, state in change.parts.values()}
    staged = sum(1 for _ in channel.objects.list("states/"))
    print(f"{head.generation} changes, {len(states)} states, {staged - len(states)} in vain")


@pytest.mark.parametrize(
    ("stock", "count", "least"),
    [
        pytest.param("directory", 2, 500),
        pytest.param("directory", 8, 1000, marks=pytest.mark.slow),
        pytest.param("bucket", 2, 100),
        pytest.param("bucket", 8, 500, marks=pytest.mark.slow),
    ],
    indirect=["stock"],
)
def test_publishers_at_once(
    stock: Stock, folder: Path, tmp_path: Path, count: int, least: int
) -> None:
    url = stock(tmp_path / "nothing")
    began = time.monotonic()
    with watched(url, only_more()) as reader:
        at_once(competitors(folder, url, range(count)))
    print(f"{count} publishers: {time.monotonic() - began:.1f} s, {reader.reads} reads")
    assert reader.reads >= least
    check_competition(url, count)


@pytest.mark.parametrize(
    "stock", ["directory", pytest.param("bucket", marks=pytest.mark.slow)], indirect=True
)
def test_what_is_deleted_may_be_published_meanwhile(
    stock: Stock, folder: Path, tmp_path: Path
) -> None:
    """Two hide and delete without any grace, two publish the same again: no page names a hole."""
    model = tmp_path / "model"
    put(Channel.at(str(model), make=True), *(wheel("torch", f"1.{n}", "cpu") for n in range(4)))
    url = stock(model)
    names = ("insist", "insist", "sweep", "sweep")
    at_once([channel_deed(name, folder / str(i), url) for i, name in enumerate(names)])
    channel = Channel.at(url)
    print(f"{channel.head().generation} changes")
    assert channel.head().generation > SEVERAL
    channel.mend([*channel.head().parts, ""])
    assert_right(channel)
    put(channel, wheel("torch", "9.0", "cpu"))
    assert_right(channel)


@pytest.mark.slow
def test_pip_all_the_while(folder: Path, tmp_path: Path) -> None:
    """Pip finds a version, fetches it and compares its hash, whoever publishes or dies of it."""
    root = tmp_path / "channel"
    put(Channel.at(str(root), make=True), wheel("torch", "0.1", "cpu"))
    text = f"server {{ listen 80; root {root}; index index.html; }}"
    env = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def install() -> list[str]:
        versions: list[str] = []
        while len(versions) < 25:
            report = tmp_path / "report.json"
            argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
            argv += ["--index-url", f"{nginx.url}/cpu/", "--report", str(report), "-q", "torch"]
            ran = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr
            (found,) = json.loads(report.read_text(encoding="utf-8"))["install"]
            versions.append(found["metadata"]["version"])
        return versions

    with Nginx(tmp_path / "nginx", text) as nginx, ThreadPoolExecutor(1) as pool:
        installed = pool.submit(install)
        with watched(str(root), only_more()) as reader:
            random = Random(0)  # noqa: S311
            kills: list[Kill] = []
            while not installed.done() or len(kills) < 10:
                two = [Kill("after", random.randrange(1, 60)) for _ in range(2)]
                names = range(1 + 2 * len(kills), 5 + 2 * len(kills))
                at_once(competitors(folder, str(root), names), two)
                kills += two
        print(f"{len(kills)} kills, {reader.reads} reads")
        versions = installed.result()
        asked = [one for one in nginx.asked() if one.status != 200]
    print(f"pip: {len(versions)} times, {sorted(set(versions))}")
    assert not asked
    assert versions == sorted(versions, key=Version)
    assert len(set(versions)) >= 3
    assert_right(Channel.at(str(root)))


def stopped_deed(zygote: Zygote, deed: Deed, stop: Kill, meanwhile: Callable[[], None]) -> bool:
    """Stop a deed at a moment; it goes on after others have done something.

    Who is stopped while it holds the lock of a directory keeps others waiting: tell if so.
    """
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(zygote.succeed, msgspec.structs.replace(deed, kill=stop))
        while not (found := stopped_processes()) and not done.done():
            time.sleep(0.01)
        assert found, "it was not stopped"
        try:
            free = is_free(Path(deed.store))
            if free:
                meanwhile()
        finally:
            for process in found:
                process.send_signal(signal.SIGCONT)
        done.result()
    return free


def is_free(folder: Path) -> bool:
    if not folder.is_dir():
        return True
    with locked(folder / objects.LOCK, wait=False) as had:
        return had


def stopped_processes() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_STOPPED:
                found.append(process)
    return found


@pytest.mark.parametrize(
    ("stock", "every"),
    [
        pytest.param("directory", 24),
        pytest.param("directory", 8, marks=pytest.mark.slow),
        pytest.param("bucket", 18, marks=pytest.mark.slow),
        pytest.param("directory", 1, marks=pytest.mark.slow),
        pytest.param("bucket", 5, marks=pytest.mark.slow),
    ],
    indirect=["stock"],
)
def test_a_slow_publisher_does_not_bring_old_pages_back(
    stock: Stock, zygote: Zygote, folder: Path, tmp_path: Path, every: int
) -> None:
    """It is stopped at any operation; others publish, and it goes on as if nothing was."""
    model = tmp_path / "model"
    DEEDS["first"](str(model), "")
    deed = channel_deed("later", folder, stock(model))
    counted = zygote.succeed(deed)
    newer = [wheel("torch", "2.0", "cpu"), wheel("vision", "2.0", "cu130"), wheel("third")]
    wanted = {made.entry.file for made in (*LATER, *newer)}
    moment: Moment = "after" if deed.store.startswith("s3:") else "file"
    reads = stops = 0
    for number in range(1 + every // 2, counted.moments[moment] + 1, every):
        url = stock(model)
        reader = Reader(Channel.at(url).objects.read)

        def publish(url: str = url, reader: Reader = reader) -> None:
            put(Channel.at(url), *newer)
            read_all(reader, Channel.at(url).head())

        slow = msgspec.structs.replace(deed, store=url)
        stop = Kill(moment, number, stop=True)
        with crash.told(stop):
            if not stopped_deed(zygote, slow, stop, publish):
                continue
            read_all(reader, Channel.at(url).head())  # which fails if a page went back
            reads += reader.reads + assert_right(Channel.at(url))
            assert wanted <= set().union(*told(Channel.at(url)).values())
            stops += 1
    print(f"{stops} stops at {counted.moments[moment]} moments, {reads} reads")
    assert stops >= 3
