"""A real tree of PyTorch, from Debian's source package, with a compiler that compiles nothing.

Each unit is replaced by an empty one: the source package, CMake, the build graph, the installation,
bindings for two Pythons, packages and their layout are real; only what the code does is not. The
library c10 is compiled, and a program runs with it.
"""

import json
import os
import re
import zipfile
from pathlib import Path

import pytest
from tests.support.forked import TORCHYARD
from tests.support.helpers import ROOT
from tests.support.recipe import Project, call, needs_debootstrap

from torchyard.toolchain.root import run_in_root

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_debootstrap]

EXAMPLE = ROOT / "examples/pytorch-debian/torchyard.toml"
LAUNCHER = ROOT / "tests/projects/pytorch-empty/empty-unit"
EMPTY = "int __attribute__((weak)) main(void) {{ return 0; }}"
INSIDE = "/mnt/torchyard/build/launcher/empty-unit"
CELL = "torch-2.6.0/linux-x86_64/cpu-openblas"
PROGRAM = """
#include <c10/core/CPUAllocator.h>
#include <c10/core/Device.h>
#include <iostream>
int main() {
  auto data = c10::GetCPUAllocator()->allocate(20);
  if (data.get()) std::cout << c10::Device("cuda:1").str() << " 20 bytes" << std::endl;
}
"""
GIVEN = "TORCHYARD_TEST_ROOT"
"""The variable that names a root that was made before, as the example says."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a root as the example says, unless there is one."""
    if given := os.environ.get(GIVEN):
        return given
    made = str(tmp_path_factory.mktemp("trixie") / "root")
    more = ("--build-dep", "pytorch", "--package", "libopenblas-dev", "--python", "cp312")
    call(*TORCHYARD, "toolchain", "root", "trixie", made, *more)
    return made


@pytest.fixture(scope="module")
def built(root: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Build all packages of the example with empty units."""
    project = Project(tmp_path_factory.mktemp("pytorch"))
    script = LAUNCHER.read_text(encoding="utf-8").replace("{", "{{").replace("}", "}}")
    line = (
        f"mkdir launcher && cat > launcher/empty-unit <<'EOF'\n{script}EOF\n"
        f"chmod +x launcher/empty-unit; cd launcher; touch empty.S; "
        f"echo '{EMPTY}' | tee empty.c > empty.cpp"
    )
    text = EXAMPLE.read_text(encoding="utf-8").replace('root = "root"', f'root = "{root}"')
    text = text.replace("prepare = [\n", f"prepare = [\n{json.dumps(line)},\n")
    launchers = "".join(f'CMAKE_{name}_COMPILER_LAUNCHER = "{INSIDE}"\n' for name in ("C", "CXX"))
    text += f'\n[[override]]\nstage = "core"\n[override.env]\n{launchers}'
    project.file.write_text(text, encoding="utf-8")
    project.torchyard("build", "package:*")
    return project


def units(project: Project, jobs: str) -> list[str]:
    log = project.torchyard("store", "show", jobs, "--log")
    return re.findall(r"\] Building \w+ object (\S+)", log)


def test_doctor_finds_nothing_wrong_where_it_is_configured(built: Project) -> None:
    """The core's job has configured the tree, and compared the features with those of the cell."""
    small = ("--set", "requirements.core.disk=1 GB")
    document = json.loads(built.torchyard("doctor", "--json", *small))
    assert document["findings"] == []


def test_the_core_is_compiled_once_for_two_pythons(built: Project) -> None:
    core = units(built, f"core:{CELL}")
    assert len(core) > 1000
    assert len(core) == len(set(core))
    for python in ("cp312", "cp313"):
        bound = units(built, f"bindings:{CELL}/{python}")
        assert 100 < len(bound) < 200
        assert not set(bound) & set(core)


def test_every_format_is_packaged(built: Project, tmp_path: Path) -> None:
    built.torchyard("store", "get", f"package:{CELL}/*", "-o", tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len([name for name in names if name.endswith(".whl")]) == 2
    assert len([name for name in names if name.endswith(".conda")]) == 4
    assert any(re.fullmatch(r"libtorch-.*2\.6\.0.*\.zip", name) for name in names)


def test_a_program_runs_with_c10(built: Project, root: str, tmp_path: Path) -> None:
    """c10 is compiled for real; with it, and with headers of the zip, a program is compiled."""
    built.torchyard("store", "get", f"package:{CELL}/any/libtorch", "-o", tmp_path)
    (archive,) = tmp_path.glob("libtorch-*.zip")
    with zipfile.ZipFile(archive) as files:
        files.extractall(tmp_path)
    (tmp_path / "main.cpp").write_text(PROGRAM, encoding="utf-8")
    compiled = "g++ -std=c++17 main.cpp -Ilibtorch/include -Llibtorch/lib -lc10 -o main"
    line = f"{compiled} && LD_LIBRARY_PATH=libtorch/lib ./main"
    assert run_in_root(root, ["sh", "-c", line], folder=tmp_path) == "cuda:1 20 bytes\n"


def test_a_package_job_fetches_no_objects(built: Project) -> None:
    """Objects and the source tree are for bindings; a package takes what was installed."""
    said = json.loads(built.torchyard("store", "show", f"core:{CELL}", "--json"))
    (core,) = said["results"]
    paths = [file["path"] for file in core["tree"]["files"]]
    needed = [path for path in paths if not path.startswith("tree/")]
    assert len(needed) < len(paths) / 3
