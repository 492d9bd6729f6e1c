"""The sample is built in conda environments, with nothing of the machine but its kernel."""

import json
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.conda_forge import MISSING, PYTHONS, conda_forge
from tests.support.recipe import PREFIX, Project, copy_sample

from torchyard.config.load import load_config
from torchyard.package.conda.index import INDEX
from torchyard.package.read import read_package
from torchyard.toolchain.conda_prefix import PREFIXES
from torchyard.toolchain.conda_root import find_conda_root
from torchyard.toolchain.root import own_python, run_in_root
from torchyard.workspace.conda_lock import lock_conda

TAGS = PYTHONS[:2]
LOCK = f"torchyard.conda/linux-x86_64/{TAGS[0]}.lock"
BUILD = '["bash", "cmake", "coreutils", "findutils", "git", "gxx_linux-64", "ninja"]'
FILE = f"""\
[project]
name = "tinytorch"
version = "1.2.0"
release = "none"
[source]
path = "."
[toolchain.conda]
channels = ["conda-forge"]
build = {BUILD}
host = ["openblas", "packaging", "setuptools", "zlib"]
[build]
requires = []
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu"]
blas = ["openblas"]
python = ["{TAGS[0]}", "{TAGS[1]}"]
package = ["conda", "conda-libtorch"]
"""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=MISSING or "apt-get asks root"),
]


class Locked(NamedTuple):
    """The sample, whose environments are locked, and the environment for commands."""

    project: Project
    env: dict[str, str]

    def torchyard(self, *words: object) -> str:
        return self.project.torchyard(*words, env=self.env)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Locked:
    channel = conda_forge()
    project = copy_sample(tmp_path_factory.mktemp("conda") / "tinytorch")
    project.file.write_text(FILE, encoding="utf-8")
    made = Locked(project, {"CONDA_CHANNEL_ALIAS": channel.parent.as_uri()})
    made.torchyard("lock")
    return made


@pytest.fixture(scope="module")
def root(locked: Locked, tmp_path_factory: pytest.TempPathFactory) -> str:
    work = tmp_path_factory.mktemp("work")
    lock = locked.project.folder / LOCK
    return find_conda_root(lock.read_text(encoding="utf-8"), work)


def test_only_the_environment_is_visible(root: str) -> None:
    """Nothing of the machine is in /usr, and the environment has a compiler."""
    assert Path("/usr/bin/gcc").exists()
    line = f"""\
export PATH={PREFIXES}/build/bin
ls /usr/bin
test ! -e /usr/bin/gcc && test ! -e /usr/include && test ! -e /etc/passwd
cd /tmp && echo 'int main() {{ return __GLIBC__ != 2; }}' > main.cpp
x86_64-conda-linux-gnu-c++ -include features.h main.cpp -o main && ./main
touch {PREFIXES}/build/bin/new || echo read-only
"""
    said = run_in_root(root, ["/bin/bash", "-euc", line]).split()
    assert said == ["bash", "env", "sh", "strip", "read-only"]


def test_torchyard_runs_beside_another_python(locked: Locked, tmp_path: Path) -> None:
    """Its own Python finds the libraries that it needs in the environment, and nowhere else."""
    own = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    other = next(tag for tag in TAGS if tag != own)
    lock = locked.project.folder / f"torchyard.conda/linux-x86_64/{other}.lock"
    root = find_conda_root(lock.read_text(encoding="utf-8"), tmp_path)
    assert own_python(root) == sys.executable
    program = "import bz2, ctypes, lzma, ssl, zlib; import torchyard.cli.main"
    run_in_root(root, [sys.executable, "-c", program])


def test_a_root_is_made_once_of_linked_packages(root: str, locked: Locked) -> None:
    lock = locked.project.folder / LOCK
    before = Path(root).stat().st_ino
    again = find_conda_root(lock.read_text(encoding="utf-8"), Path(root).parents[1])
    assert (again, Path(again).stat().st_ino) == (root, before)
    library = next(Path(f"{root}{PREFIXES}/host/lib").glob("libopenblas.so.0"))
    assert library.stat().st_nlink > 1


def test_locks_are_kept_until_the_file_asks_for_others(locked: Locked) -> None:
    file = str(locked.project.file)
    config, said = load_config(file), list[str]()
    assert config.toolchain is not None
    assert config.toolchain.conda is not None
    made = lock_conda(config.toolchain.conda, config, file, said.append, upgrade=False)
    assert made == config.lock.conda
    assert said == []
    listed = locked.torchyard("explain", f"core:{PREFIX}/cpu-openblas")
    assert "gxx_linux-64=12" in listed
    assert "openblas=0.3" in listed


def test_other_requirements_are_other_fingerprints(locked: Locked, tmp_path: Path) -> None:
    def digests(project: Project) -> dict[str, str]:
        told = json.loads(project.torchyard("plan", "--json", env=locked.env))
        return {job["stage"]: job["fingerprint"] for job in told["jobs"]}

    other = copy_sample(tmp_path / "other")
    other.file.write_text(FILE.replace(', "zlib"', ""), encoding="utf-8")
    other.torchyard("lock", env=locked.env)
    before, after = digests(locked.project), digests(other)
    assert before["source"] == after["source"]
    assert before["core"] != after["core"]
    assert before["bindings"] != after["bindings"]


def test_packages_are_built_in_the_environments(locked: Locked, tmp_path: Path) -> None:
    """One core for both Pythons; libraries are required, not bundled."""
    locked.torchyard("build", "package:*", "-o", tmp_path)
    (core,) = json.loads(locked.torchyard("store", "show", "core:*", "--json"))["results"]
    assert core["environment"]["CC"].startswith(f"{PREFIXES}/build/bin/")
    assert core["environment"]["CONDA_BUILD_SYSROOT"].startswith(f"{PREFIXES}/build/")
    for tag in TAGS:
        assert list(tmp_path.rglob(f"tinytorch-*_py{tag.removeprefix('cp')}_*.conda"))
    (libraries,) = tmp_path.rglob("libtinytorch-*.conda")
    depends = json.loads(read_package(libraries).texts[INDEX])["depends"]
    found = {depend.partition(" ")[0]: depend.partition(" ")[2] for depend in depends}
    assert found.keys() == {"__glibc", "_openmp_mutex", "libgcc", "libopenblas", "libstdcxx"}
    assert (found["libgcc"], found["libstdcxx"]) == (">=12", ">=12")
    assert re.fullmatch(r">=0\.3\.\d\d,<1\.0a0", found["libopenblas"])
    assert found["libopenblas"] != ">=0.3.20,<1.0a0"
    job = f"package:{PREFIX}/cpu-openblas/any/conda-libtorch"
    log = locked.torchyard("store", "show", job, "--log")
    assert "is left out: nothing is linked with libzlib" in log
