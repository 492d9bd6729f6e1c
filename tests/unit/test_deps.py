"""Versions of dependencies: where they are read, and which disagree."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.channels import conda, put, wheel
from tests.support.dependency_tree import SEED_FILES, git, make_tree, write_files
from tests.support.helpers import Command
from tests.support.schemas import validate

from torchyard.errors import DataError
from torchyard.features.deps.report import DepsReport
from torchyard.features.deps.use_case import compare_dependencies
from torchyard.host.files import read_data
from torchyard.host.snapshot import SUBMODULES
from torchyard.insight.dependency_table import dependency_table, parse_dependency_table
from torchyard.insight.drift import VersionDrift, agree
from torchyard.insight.submodules import tag_version
from torchyard.insight.version_readings import (
    ReadFrom,
    VersionReading,
    read_table_versions,
    requirements_in,
)
from torchyard.publish.channel.channel import Channel

SEED = {
    "cuda": (["12.4.1", "12.1.1", "11.8.0"], ".ci/docker/build.sh:3"),
    "magma": (["2.6.1"], ".ci/docker/common/install_magma.sh:2"),
    "libabseil": ([], ""),
    "libuv": ([], ""),
    "mkl": (["2024.2.0"], ".ci/docker/common/install_mkl.sh:2"),
    "nccl": (["2.21.5+", "2.21.5"], ".gitmodules:2"),
    "protobuf": (["3.7.0rc2+", "3.7.0-rc-2"], ".gitmodules:5"),
    "sleef": (["3.6+", "3.6"], ".gitmodules:8"),
    "filelock": (["any"], "setup.py:2"),
    "fsspec": (["any"], "setup.py:8"),
    "jinja2": (["any"], "setup.py:7"),
    "networkx": (["any"], "setup.py:6"),
    "numpy": (["2.0.2"], ".ci/pytorch/build.sh:2"),
    "pyyaml": (["6.0.2", "5.4.1"], ".ci/docker/requirements-ci.txt:3"),
    "requests": (["2.32.3", "2.28.1"], ".ci/docker/requirements-ci.txt:4"),
    "six": (["1.11.0"], "third_party/NNPACK/cmake/DownloadSix.cmake:2"),
    "sympy": (["1.13.1"], "setup.py:5"),
    "typing-extensions": ([">=4.8.0"], "setup.py:3"),
    "triton": (["3.1.0"], ".ci/docker/triton_version.txt:1"),
}
"""The rows of the table that conda-forge keeps by hand for 2.5.1: what upstream has, and where."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tree(tmp_path_factory.mktemp("deps"))


@pytest.fixture(scope="module")
def document(made: Path) -> DepsReport:
    return compare_dependencies(str(made), file="none.toml")


@pytest.mark.parametrize("name", SEED)
def test_every_row_of_the_table_kept_by_hand(document: DepsReport, name: str) -> None:
    (row,) = [row for row in document.dependencies if row.name == name]
    versions, where = SEED[name]
    assert sorted(row.versions(ReadFrom.TREE)) == sorted(versions)
    tree = [reading for reading in row.readings if reading.read_from is ReadFrom.TREE]
    assert where in [reading.where for reading in tree] or not where


def test_submodules_have_their_commits(made: Path, document: DepsReport) -> None:
    commits = {one.commit for row in document.dependencies for one in row.readings if one.commit}
    assert commits == set(re.findall(r"[0-9a-f]{40}", git(made, "submodule", "status")))


def test_a_source_without_history_has_the_commits_that_were_recorded(
    made: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "source"
    shutil.copytree(made, tree, ignore=shutil.ignore_patterns(".git"))
    commit = "8" * 40
    nested = "third_party/protobuf/third_party/googletest"
    (tree / SUBMODULES).write_text(f"{'7' * 40} {nested}\n{commit} third_party/sleef\n")
    document = compare_dependencies(str(tree), file="none.toml")
    (sleef,) = [row for row in document.dependencies if row.name == "sleef"]
    assert [(one.commit, str(one), one.where) for one in sleef.readings] == [
        ("", "3.6", "third_party/sleef/CMakeLists.txt:2"),
        (commit, commit[:10], f"{SUBMODULES}:2"),
    ]
    assert "protobuf/googletest" in [row.name for row in document.dependencies]


def test_a_clone_that_git_cant_read_still_has_its_files(made: Path, tmp_path: Path) -> None:
    tree = tmp_path / "source"
    shutil.copytree(made, tree, ignore=shutil.ignore_patterns(".git"))
    (tree / ".git").write_text("gitdir: nowhere\n")
    document = compare_dependencies(str(tree), file="none.toml")
    (sleef,) = [row for row in document.dependencies if row.name == "sleef"]
    assert [(str(one), one.where) for one in sleef.readings] == [
        ("3.6", "third_party/sleef/CMakeLists.txt:2"),
        ("unknown", ".gitmodules:8"),
    ]


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("v2.21.5-1", ("2.21.5", True)),
        ("v3.7.0-rc.2-1279-gd1eca4e4b", ("3.7.0rc2", True)),
        ("3.6-30-g60e76d2", ("3.6", True)),
        ("v3.1.0", ("3.1.0", False)),
        ("release-1.12.1", ("1.12.1", False)),
        ("curl-7_88_1", ("7.88.1", False)),
        ("heads/main", ("", False)),
        ("", ("", False)),
    ],
)
def test_versions_of_tags(tag: str, version: tuple[str, bool]) -> None:
    assert tag_version(tag) == version


# ----------------------------------------------------------------------- planted drift

RELEASE = "2.14"


class Planted(NamedTuple):
    """A change to a tree in which nothing disagrees, and what has to be found."""

    change: Callable[[Path], object]
    dependency: str
    severity: str
    where: str
    against: str = ""
    options: Mapping[str, str | bool] = {}


def table_version(name: str) -> str:
    found = [
        one for one in read_table_versions(RELEASE, dependency_table()) if one.dependency == name
    ]
    return str(found[-1])


def agreeing_files() -> dict[str, str]:
    """Return files of a tree that says what the tables say."""
    numpy, six = table_version("numpy"), table_version("six")
    nnpack = f"ExternalProject_Add(six\n\tURL https://example.com/six-{six}.tar.gz\n)\n"
    return {
        "version.txt": f"{RELEASE}.0\n",
        "torch/csrc/Module.cpp": "",
        "setup.py": SEED_FILES["setup.py"].replace("sympy==1.13.1", "sympy>=1.13.3"),
        "requirements.txt": "sympy>=1.13.3\nnumpy\n",
        ".ci/docker/build.sh": "x\nCUDA_VERSION=12.6.3\n",
        ".ci/docker/common/install_mkl.sh": f"\nMKL_VERSION={table_version('mkl')}\n",
        ".ci/docker/triton_version.txt": f"{table_version('triton')}\n",
        ".ci/docker/requirements-ci.txt": f"\nsympy==1.13.3\nnumpy=={numpy}\n",
        ".ci/pytorch/build.sh": f"\n\npython -mpip install numpy=={numpy}\n",
        "third_party/NNPACK/cmake/DownloadSix.cmake": nnpack,
    }


def replacing(file: str, old: str, new: str) -> Callable[[Path], object]:
    def change(tree: Path) -> None:
        text = (tree / file).read_text()
        assert old in text
        (tree / file).write_text(text.replace(old, new))

    return change


def adding(file: str, text: str) -> Callable[[Path], object]:
    return lambda tree: write_files(tree, {file: text})


def in_channel(tree: Path) -> None:
    torch = wheel("torch", "2.14.0", "cpu", ["filelock", "sympy==1.12"])
    put(Channel.at(str(tree.parent / "channel"), make=True), torch)


def in_conda(tree: Path) -> None:
    row = {"name": "sympy", "version": "1.13.2", "build": "0", "subdir": "noarch"}
    text = json.dumps({"info": {"subdir": "noarch"}, "packages": {"sympy-1.13.2-0.conda": row}})
    write_files(tree.parent / "conda", {"noarch/repodata.json": text})


def in_conda_shards(tree: Path) -> None:
    put(Channel.at(str(tree.parent / "channel"), make=True), conda("sympy", "1.13.2"))


def in_index(tree: Path) -> None:
    file = "sympy-1.13.0-py3-none-any.whl"
    write_files(tree.parent / "index", {"sympy/index.html": f'<a href="{file}">{file}</a>'})


PLANTED = {
    "submodule": Planted(
        lambda tree: git(tree / "third_party/sleef", "checkout", "--quiet", "HEAD~1"),
        "sleef",
        "error",
        ".gitmodules:8",
    ),
    "version-header": Planted(
        replacing("third_party/sleef/CMakeLists.txt", "MINOR 6", "MINOR 5"),
        "sleef",
        "error",
        ".gitmodules:8",
        "third_party/sleef/CMakeLists.txt:2",
    ),
    "requirements": Planted(
        replacing("requirements.txt", "sympy>=1.13.3", "sympy==1.12"),
        "sympy",
        "error",
        "requirements.txt:1",
        "setup.py:5",
    ),
    "metadata": Planted(
        adding("torch.egg-info/PKG-INFO", "Name: torch\nRequires-Dist: typing-extensions==4.7\n"),
        "typing-extensions",
        "error",
        "torch.egg-info/PKG-INFO:2",
        "setup.py:3",
    ),
    "ci-requirements": Planted(
        replacing(".ci/docker/requirements-ci.txt", "sympy==1.13.3", "sympy==1.13.1"),
        "sympy",
        "warning",
        ".ci/docker/requirements-ci.txt:2",
        "setup.py:5",
    ),
    "ci-script": Planted(
        replacing(".ci/pytorch/build.sh", "numpy==", "numpy==1"),
        "numpy",
        "warning",
        ".ci/pytorch/build.sh:3",
        ".ci/docker/requirements-ci.txt:3",
    ),
    "commit-pin": Planted(
        adding(".ci/docker/ci_commit_pins/nccl-cu12.txt", "v2.20.1-1\n"),
        "nccl",
        "warning",
        ".ci/docker/ci_commit_pins/nccl-cu12.txt:1",
        "third_party/nccl/nccl/makefiles/version.mk:2",
    ),
    "table-of-releases": Planted(
        replacing(".ci/docker/triton_version.txt", "3.", "4."),
        "triton",
        "error",
        "torchyard/data/releases.toml:*",
        ".ci/docker/triton_version.txt:1",
    ),
    "table-of-toolkits": Planted(
        replacing(".ci/docker/build.sh", "12.6.3", "11.5.0"),
        "cuda",
        "warning",
        ".ci/docker/build.sh:2",
        "torchyard/data/compute/cuda.toml:*",
    ),
    "pins": Planted(
        replacing(".ci/docker/common/install_mkl.sh", "=20", "=19"),
        "mkl",
        "warning",
        "torchyard/data/pins/mkl.txt:1",
        ".ci/docker/common/install_mkl.sh:2",
    ),
    "vendored-download": Planted(
        replacing("third_party/NNPACK/cmake/DownloadSix.cmake", "six-1", "six-0"),
        "six",
        "warning",
        "torchyard/data/builds.toml:*",
        "third_party/NNPACK/cmake/DownloadSix.cmake:2",
    ),
    "recipe": Planted(
        adding("torchyard.toml", '[build]\nrequires = [\n  "sympy==1.13.1",\n]\n'),
        "sympy",
        "error",
        "*torchyard.toml:3",
        "setup.py:5",
    ),
    "channel": Planted(
        in_channel,
        "sympy",
        "error",
        "torch-2.14.0+cpu-py3-none-any.whl.metadata:5",
        "setup.py:5",
        {"channel": "../channel"},
    ),
    "index": Planted(in_index, "sympy", "note", "sympy 1.13.0", "setup.py:5", {"newest": True}),
    "conda": Planted(
        in_conda, "sympy", "note", "sympy 1.13.2", "setup.py:5", {"conda": "../conda"}
    ),
    "conda-shards": Planted(
        in_conda_shards,
        "sympy",
        "note",
        "sympy 1.13.2",
        "setup.py:5",
        {"conda": "../channel/conda"},
    ),
}


@pytest.fixture(scope="module")
def agreeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which nothing disagrees, to be copied."""
    folder = tmp_path_factory.mktemp("agreeing")
    tree = make_tree(folder, {})
    write_files(tree, agreeing_files())
    nccl = table_version("nccl").split(".")
    (tree / "third_party/nccl/nccl/makefiles/version.mk").write_text(
        "#\n"
        + "".join(
            f"NCCL_{n} := {v}\n" for n, v in zip(("MAJOR", "MINOR", "PATCH"), nccl, strict=False)
        )
    )
    return tree


@pytest.fixture
def tree(agreeing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(agreeing, tmp_path / "pytorch", symlinks=True)
    monkeypatch.chdir(tmp_path / "pytorch")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())
    for name in ("UV_INDEX", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "pytorch"


def test_nothing_disagrees_in_a_tree_that_agrees(tree: Path, torchyard: Command) -> None:
    assert compare_dependencies(".").drift == []
    assert torchyard("deps", "--source", str(tree), "--fail-on-conflict").code == 0


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_drift_is_found_with_its_file_and_line(tree: Path, kind: str) -> None:
    planted = PLANTED[kind]
    planted.change(tree)
    drift = compare_dependencies(".", **planted.options).drift  # type: ignore[arg-type]
    assert {one.dependency for one in drift} == {planted.dependency}
    assert any(_is_planted(one, planted) for one in drift), drift


def _is_planted(one: VersionDrift, planted: Planted) -> bool:
    def fits(where: str, wanted: str) -> bool:
        return re.fullmatch(re.escape(wanted).replace(r"\*", ".*"), where) is not None

    against = one.against.where if one.against else ""
    places = fits(one.reading.where, planted.where) and fits(against, planted.against)
    return places and one.severity.value == planted.severity


# ----------------------------------------------------------------------------- reading


def readings(text: str, file: str, *, required: bool = False) -> Iterator[tuple[str, str, int]]:
    names = dependency_table().pip_names()
    for one in requirements_in(text, file, ReadFrom.TREE, names, required=required):
        yield one.dependency, str(one), one.line


@pytest.mark.parametrize(
    ("line", "file", "found"),
    [
        ("numpy", "requirements.txt", ["any"]),
        ("numpy==2.1.2; python_version >= '3.13'  # new", "requirements.txt", ["2.1.2"]),
        ("NumPy >= 1.26 , < 3", "requirements.txt", [">=1.26,<3"]),
        ("#numpy==1", "requirements.txt", []),
        ("        'numpy',", "setup.py", ["any"]),
        ("import numpy", "setup.py", []),
        ("numpy", "setup.py", []),
        ("Requires-Dist: numpy (>=1.2)", "x.dist-info/METADATA", [">=1.2"]),
        ("Requires-Dist: numpy", "x.dist-info/METADATA", ["any"]),
        ("pip install -q numpy==1.2 'numpy>=3'", "a.sh", ["1.2", ">=3"]),
        ('if [[ "$numpy" == 1 ]]; then', "a.sh", []),
        ("my-numpy==1", "a.sh", []),
        ('requires = ["numpy==2.2.6", "x==1"]', "torchyard.toml", ["2.2.6"]),
    ],
)
def test_requirements_in_files(line: str, file: str, found: list[str]) -> None:
    assert [version for _, version, _ in readings(f"\n{line}\n", file)] == found
    assert all(number == 2 for *_, number in readings(f"\n{line}\n", file))


def test_every_name_of_a_file_that_binds_is_a_dependency() -> None:
    assert list(readings("psutil\nnumpy\n", "requirements.txt", required=True)) == [
        ("psutil", "any", 1),
        ("numpy", "any", 2),
    ]


def reading(version: str, *, ahead: bool = False) -> VersionReading:
    return VersionReading(
        dependency="x", read_from=ReadFrom.TREE, version=version, file="f", ahead=ahead
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("3.5", "3.5.1", True),
        ("3.5.1", "==3.5.2", False),
        ("==2.0", ">=1.26,<3", True),
        (">=4.10", "4.8", False),
        ("3.7.0rc2", "3.7.0", False),
        ("v9-branch", "1.0", True),
        ("", "1.0", True),
    ],
)
def test_versions_agree_as_far_as_both_go(one: str, other: str, same: bool) -> None:
    assert agree(reading(one), reading(other)) is same
    assert agree(reading(other), reading(one)) is same


def test_commits_on_top_of_a_version_may_be_a_later_one() -> None:
    assert agree(reading("3.7", ahead=True), reading("3.11.4"))
    assert not agree(reading("3.7", ahead=True), reading("3.6"))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("[dependencies.six]", "[dependencies.six]\nfoo = 1", "unknown field `foo`"),
        (r"/six-(\d[\d.]*)\.tar", "/six", "without a group"),
        (r"/six-(\d[\d.]*)\.tar", "/six(", "no regular expression"),
        ('"WORKSPACE"', '"../WORKSPACE"', "not in a tree"),
        ('pip = ["triton", ', 'pip = ["numpy", ', "gives the package numpy"),
    ],
)
def test_mistakes_in_the_table_are_refused(old: str, new: str, why: str) -> None:
    text = read_data("dependencies.toml")
    assert old in text
    with pytest.raises(DataError, match=re.escape(why)):
        parse_dependency_table(text.replace(old, new))


# ----------------------------------------------------------------------------- command


def test_the_command_writes_all_its_forms_and_is_a_gate(
    tree: Path, tmp_path: Path, torchyard: Command
) -> None:
    PLANTED["recipe"].change(tree)
    page, table = tmp_path / "deps.html", tmp_path / "deps.md"
    words = ["deps", "--html", str(page), "--markdown", str(table)]
    plain = torchyard(*words)
    assert plain.code == 0
    assert "sympy: the recipe has 1.13.1, and the tree has >=1.13.3" in plain.out
    gate = torchyard("deps", "--fail-on-conflict", "--json")
    assert gate.code == 17
    validate(json.loads(gate.out), "deps")
    assert "torchyard.toml:3" in page.read_text()
    assert "| sympy | >=1.13.3, 1.13.3 | 1.13.1 |" in table.read_text().replace("&gt;", ">")


def test_a_directory_without_versions_is_refused(tmp_path: Path, torchyard: Command) -> None:
    assert torchyard("deps", "--source", str(tmp_path)).code == 5
    assert torchyard("deps", "--source", str(tmp_path / "none")).code == 7


def test_a_tree_that_was_written_to_do_harm(tmp_path: Path, torchyard: Command) -> None:
    digits = "9" * 6000
    (tmp_path / "torch/csrc").mkdir(parents=True)
    (tmp_path / "version.txt").write_text(f"{digits}.0a0\n")
    (tmp_path / "requirements.txt").write_text(
        f"sympy==1.13.1\x1b[31m\nnumpy=={digits}\nfilelock==1; x < '<script>\x1b[31m'\n"
    )
    os.mkfifo(tmp_path / ".gitmodules")
    os.mkfifo(tmp_path / "requirements-build.txt")
    (tmp_path / "setup.py").symlink_to("/etc/os-release")
    page, table = tmp_path / "deps.html", tmp_path / "deps.md"
    done = torchyard("deps", "--source", tmp_path, "--html", page, "--markdown", table)
    assert done.code == 0, done.err
    assert "sympy" in done.out
    for text in (done.out + done.err, page.read_text(), table.read_text()):
        assert "\x1b" not in text
        assert "<script" not in text
        assert digits not in text


def test_a_tag_that_is_too_long_to_be_one() -> None:
    assert tag_version(f"v1.{'9' * 6000}-2-gabcdef0")[1] is True
