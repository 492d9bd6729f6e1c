"""Recipes as conda-forge's are built as they are, with the bytes that rattler-build alone makes."""

import io
import json
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from tests.support import bare_recipe
from tests.support.conda_forge import MISSING, conda_forge
from tests.support.forked import TORCHYARD
from tests.support.helpers import ROOT
from tests.support.recipe import Project, call, run

from torchyard.host.zstd import decompress

RECIPES = ROOT / "tests/projects/conda-recipes"
INSIDE = "/mnt/torchyard"
UNKNOWN = re.compile(r"^\s*(timestamp|sha256|md5|size): .*$", re.MULTILINE)
"""The time of a build, and what depends on it: rattler-build takes both from the clock."""

UNPACKED = 50_000_000
"""Fewer bytes than those of the compilers, which jobs use from a cache that they share."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=MISSING or "apt-get asks root"),
]


class Recipe(NamedTuple):
    """A recipe that `init` has made a project of."""

    project: Project
    env: dict[str, str]

    def torchyard(self, *words: object) -> str:
        return self.project.torchyard(*words, env=self.env)


@pytest.fixture
def recipe(request: pytest.FixtureRequest, tmp_path: Path) -> Recipe:
    folder = tmp_path / request.param
    shutil.copytree(RECIPES / request.param, folder)
    env = {"CONDA_CHANNEL_ALIAS": conda_forge().parent.as_uri(), "XDG_CACHE_HOME": str(tmp_path)}
    made = Recipe(Project(folder), env)
    made.torchyard("init")
    return made


@pytest.mark.parametrize(
    ("recipe", "count"), [("checksum", 1), ("fastsum", 4), ("gauge", 5)], indirect=["recipe"]
)
def test_a_recipe_is_run_as_it_is(recipe: Recipe, count: int, tmp_path: Path) -> None:
    """Two commands build, check, test and publish; nothing is left to do for a second run."""
    out, folder = tmp_path / "out", recipe.project.folder
    recipe.torchyard("build", "-o", out)
    assert recipe.torchyard("build").count(" cached ") == count
    made = {path.name: contents(path) for path in out.glob("*.conda")}
    bare = {path.name: contents(path) for path in run_alone(RECIPES / folder.name, tmp_path)}
    assert len(made) == count
    assert made == bare
    channel = folder / ".torchyard/channel/conda"
    indexes = [json.loads(path.read_bytes()) for path in channel.glob("*/repodata.json")]
    assert {name for index in indexes for name in index["packages.conda"]} == made.keys()
    for job in recipe.torchyard("plan", "--list", "jobs").split():
        if job.startswith("smoke:") and job.endswith(f"/{folder.name}"):
            assert "recipe/script-" in recipe.torchyard("store", "show", job, "--log")
        if job.startswith(("core:", "bindings:")):
            (result,) = json.loads(recipe.torchyard("store", "show", job, "--json"))["results"]
            assert all(used["disk"] < UNPACKED for used in result["steps"])
    assert {*tmp_path.glob("torchyard/conda/packages/gcc_impl_linux-64-*/bin")}


@pytest.mark.parametrize("recipe", ["checksum"], indirect=True)
@pytest.mark.parametrize(
    ("file", "old", "new", "cause"),
    [
        ("src/checksum.c", "zlib.h", "zlob.h", "A header is missing: zlob.h (checksum.c:3)"),
        ("recipe.yaml", "- zlib", "- zlibb", "No candidates were found for zlibb"),
        ("recipe.yaml", "libchecksum.so", "libother.so", "No match for lib glob: lib/libother.so"),
    ],
)
def test_a_failed_build_names_its_cause(
    recipe: Recipe, file: str, old: str, new: str, cause: str
) -> None:
    path = recipe.project.folder / file
    path.write_text(path.read_text().replace(old, new))
    failed = run(*TORCHYARD, "build", "package:*", "-f", recipe.project.file, env=recipe.env)
    assert failed.returncode == 9
    assert cause in failed.stderr


def run_alone(recipe: Path, folder: Path) -> list[Path]:
    """Return the packages that rattler-build makes, at the paths of a job."""
    work = folder / "alone"
    work.mkdir()
    view = ("bwrap", "--dev-bind", "/", "/", "--tmpfs", "/mnt", "--bind", work, INSIDE, "--")
    words = (recipe / "recipe.yaml", f"{INSIDE}/build/output", conda_forge().as_uri(), "3.10")
    call(*view, sys.executable, bare_recipe.__file__, *words, env={"HOME": str(work)})
    return [*work.glob("build/output/*/*.conda")]


def contents(package: Path) -> dict[str, object]:
    """Return all files of a package, without times, and lists in any order.

    rattler-build itself writes `depends` in an order that differs between two runs.
    """
    found: dict[str, object] = {}
    with ZipFile(package) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if not name.endswith(".tar.zst"):
                found[name] = data
                continue
            with tarfile.open(fileobj=io.BytesIO(decompress(data))) as tree:
                for entry in tree:
                    file = tree.extractfile(entry) if entry.isfile() else None
                    text = file.read() if file else b""
                    found[entry.name] = (entry.mode, entry.linkname, plain(entry.name, text))
    return found


def plain(name: str, data: bytes) -> object:
    if name == "info/index.json":
        index = json.loads(data)
        return {key: sorted(v) if key == "depends" else v for key, v in index.items()} | {
            "timestamp": 0
        }
    if name == "info/recipe/rendered_recipe.yaml":
        return sorted(UNKNOWN.sub("", data.decode()).splitlines())
    return data
