"""The sample project from a farm to a channel: the same packages as built locally."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from farm.tests.farms import TrialFarm, postgres, postgres_programs
from tests.support.installers import Pip
from tests.support.publishing import torchyard
from tests.support.recipe import PREFIX, Project, channel_for, shared_sample
from tests.support.served import bucket_config
from tests.support.services import PUBLIC, Nginx, S3Server
from tests.support.smoke import make_wheel
from torchyard.host.machine import python_name
from torchyard.model.recipe import Stage
from torchyard.store.store import Store
from torchyard.store.verify import remove_result

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(map(shutil.which, ("gcc", "bwrap"))), reason="there is no gcc or no bwrap here"
    ),
    pytest.mark.skipif(postgres_programs() is None, reason="there is no PostgreSQL here"),
]

VIEW = "cpu-openblas"
WORKERS = ("w1", "w2")
PUBLISHES = """
[worker.uploads]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
publish = true
"""
EXTERNAL = ("cuda-toolkit", "libgcc", "libstdcxx", "python", "python_abi", "typing_extensions")
USE = "import tinytorch as t; assert t.add([1, 2], [3, 4]) == [4, 6]; print(t.__version__)"
PART = f'{{compute="cpu",blas="openblas",python="{python_name()}"}}'
CELLS = (
    f"{python_name()}/wheel",
    f"{python_name()}/conda",
    "any/conda-libtorch",
    "any/conda-meta",
    "any/libtorch",
)

COMPILED = ("core", "bindings")
PACKAGED = ("package", "check", "smoke")


class _Properties(msgspec.Struct):
    task: tuple[str, str]
    workername: tuple[str, str]


class _Build(msgspec.Struct):
    properties: _Properties


class Config(NamedTuple):
    """A farm, the bucket that it publishes to, and the server of the channel."""

    farm: TrialFarm
    nginx: Nginx
    url: str

    def build(self, store: Path, *words: str, subset: str = "") -> None:
        """Build the project on the farm, and publish it."""
        channel = f'url="{self.url}",variants="compute-blas",external={json.dumps(EXTERNAL)}'
        chosen = f'{channel},subset="{subset}"' if subset else channel
        conda = self.farm.file.parent / ".torchyard/channel"
        done = torchyard(
            *("build", "--engine", "buildbot", "--farm", self.farm.master, "-f", self.farm.file),
            *("--store", store, "--set", f"channel={{nightly={{{chosen}}}}}"),
            *("--set", f'smoke.channels=["{conda}"]', *words),
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def yard_for(project: Project, folder: Path) -> Iterator[Config]:
    """Three workers, of which one publishes to a bucket, and only that one can."""
    with ExitStack() as stack:
        (folder / "s3").mkdir()
        server = stack.enter_context(S3Server(folder / "s3"))
        place = server.public_place()
        config = bucket_config(server.endpoint, f"{PUBLIC}/{place.prefix}")
        nginx = stack.enter_context(Nginx(folder / "nginx", config))
        database = stack.enter_context(postgres())
        farm = TrialFarm(
            folder / "farm", project.file, database, WORKERS, tables=PUBLISHES, by_command=True
        )
        stack.enter_context(farm)
        farm.start_master()
        farm.start_workers()
        farm.start_worker("uploads", "--publish", env=place.environment)
        (folder / "others").mkdir()
        for dist in ("typing_extensions", "packaging"):
            make_wheel(folder / "others", version="99.0", dist=dist)
        words = ("--to", place.url, "--variants", "compute-blas")
        done = torchyard("publish", folder / "others", *words, env=place.environment)
        assert done.returncode == 0, done.stderr
        yield Config(farm, nginx, place.url)


class Packed(NamedTuple):
    """Return the sha256 of each file of a result."""

    job: str
    files: dict[str, str]


def packages_in(store: Path) -> dict[str, Packed]:
    """Return all packages, by fingerprint: a store may have several of one job."""
    return {
        result.fingerprint: Packed(result.id, {f.path: f.digest for f in result.tree.files})
        for result in Store.at(str(store)).results()
        if result.spec.task.stage is Stage.PACKAGE
    }


def check_installed(url: str, folder: Path) -> None:
    """Install the wheel as users do, and use it."""
    assert Pip().install(f"{url}/{VIEW}/", "tinytorch", folder)["tinytorch"] == "1.2.0+cpu"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}
    used = subprocess.run([sys.executable, "-c", USE], env=env, check=True, stdout=-1, text=True)
    assert used.stdout == "1.2.0+cpu\n"


def bring_compiled(project: Project, store: Path) -> None:
    """Copy the project's store, without packages and what is made from them."""
    project.own_store(store)
    copy = Store.at(str(store))
    for result in list(copy.results()):
        if result.spec.task.stage not in (Stage.SOURCE, Stage.CORE, Stage.BINDINGS):
            remove_result(copy, result)


def check_published_by(farm: TrialFarm, *stages: str) -> None:
    """One machine published, and did nothing else; the others did what came before."""
    done: dict[str, set[str]] = {name: set() for name in (*WORKERS, "uploads")}
    found = farm._ask("builds?property=task&property=workername")["builds"]
    for build in msgspec.convert(found, list[_Build]):
        done[build.properties.workername[0]].add(build.properties.task[0].partition(":")[0])
    assert done["uploads"] == {"publish"}
    assert done["w1"] | done["w2"] == set(stages)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_a_part_of_the_sample_is_built_and_published_by_a_farm(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, *, compiled: bool
) -> None:
    """Every kind of package of one Python: from what was compiled, or the source, to a channel."""
    part = ("--subset", "part", "--set", f"subset={{part={PART}}}")
    with shared_sample(tmp_path_factory) as project:
        channel_for(project, python_name())
        project.torchyard("build", "package:*", *part)
        ours = packages_in(project.store)
        if compiled:
            bring_compiled(project, tmp_path / "store")
    with yard_for(project, tmp_path) as config:
        config.build(tmp_path / "store", *part, "--set", 'smoke.level="import"', subset="part")
        theirs = packages_in(tmp_path / "store")
        assert sorted(made.job for made in theirs.values()) == sorted(
            f"package:{PREFIX}/{VIEW}/{cell}" for cell in CELLS
        )
        assert theirs == {name: ours[name] for name in theirs}
        check_installed(config.nginx.url, tmp_path / "installed")
        check_published_by(config.farm, *(() if compiled else COMPILED), *PACKAGED)


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(shutil.which, ("nvcc", "hipcc"))), reason="there is no CUDA or no ROCm here"
)
def test_the_whole_sample_is_built_and_published_by_a_farm(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An hour: two BLAS, four Pythons, CUDA and ROCm, all kinds of packages, twice."""
    with shared_sample(tmp_path_factory) as project:
        channel_for(project, "cp310", "cp311", "cp312", "cp313")
        project.torchyard("build", "package:*")
        ours = packages_in(project.store)
    with yard_for(project, tmp_path) as config:
        config.build(tmp_path / "store")
        theirs = packages_in(tmp_path / "store")
        assert len(theirs) == 35
        assert theirs == {name: ours[name] for name in theirs}
        check_installed(config.nginx.url, tmp_path / "installed")
        check_published_by(config.farm, *COMPILED, *PACKAGED)
