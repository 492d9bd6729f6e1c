"""What a file says of conda packages is in them; they are tried, and published."""

import json
import shutil
from pathlib import Path

import pytest
from tests.support.recipe import PREFIX, Project, channel_for, copy_sample

from torchyard.package.conda.index import conda_index, json_fields
from torchyard.package.conda.name import conda_name
from torchyard.package.read import read_package

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, ("gcc", "bwrap"))), reason="there is no gcc or no bwrap here"
    ),
]

PYTHON = "cp311"
CELLS = [f"{PREFIX}/cpu-openblas/{cell}" for cell in (f"{PYTHON}/conda", "any/conda-libtorch")]
OUTPUTS = """
[conda.outputs.conda]
name = "py-tiny"
depends = ["typing_extensions >=4.1"]
about = { documentation = "https://example.org/docs", license_family = "MIT" }
tests.imports = ["tinytorch"]
tests.commands = ["python -c 'import tinytorch; assert tinytorch.add([1], [2]) == [3]'"]

[conda.outputs.conda-libtorch]
name = "libtiny"
version = "7.0"
pin = "exact"
build_string = "{flavour}_mine_{hash}_{number}"
build_offset = 2
license_files = ["notices/*"]
tests.contents = ["lib/libtt_cpu.so"]

[channel.own]
url = "channel"
external = ["*"]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = copy_sample(tmp_path_factory.mktemp("outputs") / "tinytorch", OUTPUTS)
    (project.folder / "notices").mkdir()
    (project.folder / "notices/NOTICE").write_text("Mine.", encoding="utf-8")
    channel_for(project, PYTHON)
    jobs = [f"{stage}:{cell}" for stage in ("check", "smoke") for cell in CELLS]
    project.torchyard("build", *jobs)
    return project


def test_packages_are_as_the_file_says(project: Project, tmp_path: Path) -> None:
    package = read_package(project.package(f"cpu-openblas/{PYTHON}/conda", tmp_path))
    libraries = read_package(project.package("cpu-openblas/any/conda-libtorch", tmp_path))
    index, own = conda_index(package), conda_index(libraries)
    assert index is not None
    assert own is not None
    assert (index.name, own.name, own.version) == ("py-tiny", "libtiny", "7.0")
    assert own.build.startswith("cpu_openblas_mine_h")
    assert own.build.endswith("_2")
    assert f"libtiny ==7.0 {own.build}" in index.depends
    assert "typing_extensions >=4.1" in index.depends
    assert json_fields(package, "info/about.json")["doc_url"] == "https://example.org/docs"
    assert libraries.texts["info/licenses/NOTICE"] == b"Mine."
    exports = json_fields(libraries, "info/run_exports.json")
    assert exports == {"weak": [f"libtiny ==7.0 {own.build}"]}


def test_the_tests_in_a_package_are_run(project: Project, tmp_path: Path) -> None:
    project.torchyard("store", "get", f"smoke:{CELLS[0]}", "-o", tmp_path)
    (report,) = json.loads((tmp_path / "smoke.json").read_bytes())["packages"]
    for run in report["runs"]:
        outcomes = {test["test"]: test["outcome"] for test in run["tests"]}
        assert outcomes["recipe/imports-0.py"] == "passed"
        assert outcomes["recipe/script-1.sh"] == "passed"


def test_packages_of_other_names_are_published(project: Project) -> None:
    told = project.torchyard("publish", "--to", "own", "--partial", "--json")
    assert {conda_name(file["file"]) for file in json.loads(told)["files"]} == {
        "py-tiny",
        "libtiny",
    }
