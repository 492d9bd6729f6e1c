"""The compile cache of a machine: nothing is compiled twice."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from farm.tests.farms import TrialFarm, wait_until
from tests.support.helpers import ROOT
from tests.support.publishing import torchyard
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.store.store import Store

needs_compilers = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "bwrap"))), reason="there is no gcc or no bwrap here"
)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("redis://me:hunter22@host", "`cache` contains a name or a password for host"),
        ("/srv/cache?size=much", "`much` is not a number"),
    ],
)
def test_a_worker_does_not_start_with_a_cache_that_jobs_could_not_use(
    tmp_path: Path, place: str, what: str
) -> None:
    (tmp_path / "w1").touch()
    where = ("--master", "127.0.0.1:1", "--name", "w1", "--password-file", tmp_path / "w1")
    done = torchyard("farm", "worker", tmp_path / "work", *where, "--cache", place)
    assert done.returncode == 3
    assert what in done.stderr
    assert "hunter22" not in done.stderr


def make_project(folder: Path, gate: Path) -> Path:
    """Two units, and a zip of the library that they make; first, CMake waits for a file."""
    shutil.copytree(ROOT / "tests/projects/smalltorch", folder)
    with (folder / "CMakeLists.txt").open("a", encoding="utf-8") as lists:
        lists.write(f'execute_process(COMMAND sh -c "until test -e {gate}; do sleep 0.2; done")\n')
    file = folder / "torchyard.toml"
    text = file.read_text("utf-8").replace('["wheel"]', '["libtorch"]')
    file.write_text(text.replace("[toolchain]", '[toolchain]\ncache = "not/here"'), "utf-8")
    return file


def build(farm: TrialFarm, store: Path, version: str = "1.0") -> dict[Stage, Result]:
    """Build the project on the farm, and return the results of each stage."""
    engine = ("--engine", "buildbot", "--farm", farm.master, "-f", farm.file)
    change = ("--set", f'project.version="{version}"')
    done = torchyard("build", *engine, "--store", store, *change)
    assert done.returncode == 0, done.stderr
    return {one.spec.task.stage: one for one in Store.at(str(store)).results()}


def digests(built: dict[Stage, Result]) -> dict[str, str]:
    """Return the sha256 of all files of packages."""
    return {file.path: file.digest for file in built[Stage.PACKAGE].tree.files}


def served(built: dict[Stage, Result]) -> tuple[str, str]:
    """Return the cache hits and misses of a core."""
    facts = built[Stage.CORE].facts
    return facts["cache_hits"], facts["cache_misses"]


def servers_of(cache: Path) -> list[psutil.Process]:
    """Return the processes of a cache server."""
    return [
        process
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get("SCCACHE_DIR") == str(cache)
    ]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """A directory for a cache, whose server is stopped if a test fails."""
    place = tmp_path / "cache"
    yield place
    for process in servers_of(place):
        process.kill()


@pytest.mark.integration
@pytest.mark.slow
@needs_compilers
def test_what_a_machine_compiled_once_it_does_not_compile_again(
    tmp_path: Path, cache: Path
) -> None:
    """With an empty store; also if the worker process was killed, and in two concurrent jobs."""
    gate = tmp_path / "open"
    file = make_project(tmp_path / "project", gate)
    given = ("w1", "--cache", f"{cache}?size=1GB")
    farm = TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",), slots=2)
    with ThreadPoolExecutor() as pool, farm:  # the build gives up without a master
        farm.start_master()
        farm.start_worker(*given)
        building = pool.submit(build, farm, tmp_path / "first")
        wait_until(lambda: bool(servers_of(cache)), 300, farm.log)
        farm.kill("w1")
        farm.start_worker(*given)
        gate.touch()
        first = building.result()
        assert served(first) == ("0", "3")
        assert servers_of(cache) == []
        building = pool.submit(build, farm, tmp_path / "second")
        other = pool.submit(build, farm, tmp_path / "other", "2.0")
        second = building.result()
        assert served(second) == served(other.result()) == ("3", "0")
        assert servers_of(cache) == []
    for stage in (Stage.CORE, Stage.PACKAGE):
        assert second[stage].fingerprint == first[stage].fingerprint
    assert digests(second) == digests(first)
    assert not (file.parent / "not").exists()
