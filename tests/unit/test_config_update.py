"""New releases of torch, CUDA and Python become rows of a file's tables, read from an index."""

import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.support.helpers import Command
from tests.support.torch_index import LINUX, add_torch, add_wheel

from torchyard.workspace.indexed_release import is_installable

FILE = """\
[project]
name = "torch"
version = "9.8.0"
recipe = "pytorch"
[source]
path = "."
[toolchain]
[matrix]
platform = ["linux-x86_64"]
compute = ["cu199"]
blas = ["mkl"]
python = ["cp399"]
package = ["wheel"]
# a comment of the author
"""
HEADER = """\
#if __GNUC__ > 17
#error -- unsupported GNU version!
#if defined(__clang__) && ((__clang_major__ < 16) || (__clang_major__ > 23))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of torch 9.8 for CUDA 19.9, and an index that has just that."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "empty").as_uri())
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    requires = ("cuda-toolkit[cublas]==19.9.1", "triton==9.9.0")
    add_torch(wheels, "9.8.1", *requires, pythons=("cp312", "cp399"))
    crt = f"py3-none-{LINUX}"
    add_wheel(wheels, "nvidia_cuda_crt", "19.9.3", tag=crt)
    with zipfile.ZipFile(wheels / f"nvidia_cuda_crt-19.9.3-{crt}.whl", "a") as wheel:
        wheel.writestr("nvidia/cu19/include/crt/host_config.h", HEADER)
    project = tmp_path / "project"
    project.mkdir()
    (project / "torchyard.toml").write_text(FILE)
    monkeypatch.chdir(project)
    return project


def test_a_release_that_no_table_has_is_planned_after_an_update(
    folder: Path, torchyard: Command
) -> None:
    refused = torchyard("plan")
    assert "`torchyard config update` reads new ones" in refused.err
    printed = torchyard("config", "update")
    assert torchyard("config", "update", "--write").err.endswith("wrote 3 rows to torchyard.toml\n")
    text = (folder / "torchyard.toml").read_text()
    assert text == f"{FILE}\n{printed.out}"
    tables = tomllib.loads(text)["tables"]
    assert tables == {
        "releases": {
            "9.8": {
                "pythons": ["cp312", "cp399"],
                "libraries": {"cu199": {}},
                "archs": {"cu199": {"linux-x86_64": ["7.5", "9.0a", "12.0+PTX"]}},
            }
        },
        "pythons": {"cp399": {"version": "3.99"}},
        "compute": {
            "cu199": {
                "version": "19.9",
                "gcc_max": "17",
                "clang_max": "23",
                "archs": {"linux-x86_64": ["7.5", "9.0a", "12.0+PTX"]},
            }
        },
    }
    assert "linux-x86_64" in torchyard("plan").out
    assert "everything that the index has" in torchyard("config", "update", "--write").err


@pytest.mark.parametrize(
    ("tag", "is_fit"),
    [
        ("manylinux1_x86_64", True),
        ("manylinux2014_x86_64", True),
        ("manylinux_2_28_x86_64", True),
        ("manylinux_2_31_x86_64", False),
        ("manylinux2014_aarch64", False),
        ("win_amd64", False),
    ],
)
def test_old_names_of_manylinux_count(tag: str, *, is_fit: bool) -> None:
    assert is_installable(tag, LINUX) is is_fit


def test_init_takes_the_version_of_a_tree_of_torch(
    tmp_path: Path, torchyard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch/csrc").mkdir(parents=True)
    (tmp_path / "version.txt").write_text("2.5.1\n")
    monkeypatch.chdir(tmp_path)
    torchyard("init")
    written = tomllib.loads((tmp_path / "torchyard.toml").read_text())
    assert written["project"]["version"] == "2.5.1"
    assert written["source"] == {"path": "."}
    assert "release" not in written["project"]  # the tables have pins of 2.5


@pytest.mark.parametrize(
    ("version", "compute"),
    [("2.0.1", "cu118"), ("2.5.1", "cu121"), ("2.5.1", "cu124"), ("2.7.1", "cu128")],
)
def test_old_releases_are_planned(
    tmp_path: Path, torchyard: Command, version: str, compute: str
) -> None:
    text = FILE.replace("9.8.0", version).replace("cu199", compute).replace("cp399", "cp311")
    (tmp_path / "torchyard.toml").write_text(text)
    planned = torchyard("plan", "-f", str(tmp_path / "torchyard.toml"))
    assert f"torch {version} (recipe pytorch): 1 package" in planned.out
