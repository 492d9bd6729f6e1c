"""Packages of the sample project are looked into and tried by the jobs of their own plan."""

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.support.forked import TORCHYARD
from tests.support.recipe import PREFIX, SAMPLE, Project, channel_for, run, shared_sample
from tests.support.schemas import validate

from torchyard.errors import CheckError, SmokeError
from torchyard.features.check.report import CheckReport
from torchyard.features.smoke.report import SmokeReport

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, ("gcc", "bwrap"))), reason="there is no gcc or no bwrap here"
    ),
]

PYTHON = "cp311"
KINDS = {
    f"{PYTHON}/wheel": ".whl",
    f"{PYTHON}/conda": ".conda",
    "any/conda-libtorch": ".conda",
    "any/conda-meta": ".conda",
    "any/libtorch": ".zip",
}
WHEEL = f"{PREFIX}/cpu-openblas/{PYTHON}/wheel"
CONDA = f"{PREFIX}/cpu-openblas/{PYTHON}/conda"
CELLS = [f"{PREFIX}/cpu-openblas/{kind}" for kind in KINDS]
PACKAGES = 35
OWN = f"{sys.executable} -P -m torchyard"
ASTRAY = [
    {"run": f"{OWN} tool pack --spec {{spec}} --inputs {{inputs}} --scratch {{build}} --to made"},
    {"run": f"{OWN} repair made/*.whl --rpath '$ORIGIN/nowhere' --no-check -o {{out}}"},
]
"""Steps that make a wheel whose libraries do not find each other."""


class Result(NamedTuple):
    """The files of one job's result."""

    folder: Path

    def read(self, name: str) -> bytes:
        """A report of which a schema tells what is in it."""
        text = (self.folder / f"{name}.json").read_bytes()
        validate(json.loads(text), name)
        return text


def result_of(project: Project, job: str, folder: Path) -> Result:
    project.torchyard("store", "get", job, "-o", folder)
    return Result(folder)


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Build a part of the matrix to its end, once for all processes of a test run."""
    with shared_sample(tmp_path_factory) as project:
        channel_for(project, PYTHON)
        jobs = [f"{stage}:{cell}" for stage in ("check", "smoke") for cell in CELLS]
        project.torchyard("build", *jobs)
    return project


@pytest.mark.parametrize("kind", KINDS)
def test_packages_are_looked_into(proven: Project, tmp_path: Path, kind: str) -> None:
    result = result_of(proven, f"check:{PREFIX}/cpu-openblas/{kind}", tmp_path)
    document = msgspec.json.decode(result.read("check"), type=CheckReport)
    (package,) = document.packages
    assert package.file.endswith(KINDS[kind])
    assert not package.findings
    assert bool(package.libraries) == (kind != "any/conda-meta")
    page = (tmp_path / "check.html").read_text(encoding="utf-8")
    assert package.file in page


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "any/conda-meta"])
def test_packages_are_tried(proven: Project, tmp_path: Path, kind: str) -> None:
    result = result_of(proven, f"smoke:{PREFIX}/cpu-openblas/{kind}", tmp_path)
    document = msgspec.json.decode(result.read("smoke"), type=SmokeReport)
    (package,) = document.packages
    assert package.file.endswith(KINDS[kind])
    installers = {".whl": ["uv", "pip"], ".conda": ["conda"], ".zip": ["unzip"]}[KINDS[kind]]
    assert [(one.installer, one.environment) for one in package.runs] == [
        (installer, environment) for installer in installers for environment in ("clean", "hostile")
    ]
    for one in package.runs:
        outcomes = {test.test: test.outcome for test in one.attempts}
        assert outcomes.pop("smoke/gpu.py") == "not run"
        if PYTHON in kind:
            assert set(outcomes.values()) == {"passed"}
        assert outcomes["smoke/consumer.cpp"] == "passed"


def test_a_package_without_files_is_not_tried(proven: Project) -> None:
    told = proven.torchyard(
        "store", "show", f"smoke:{PREFIX}/cpu-openblas/any/conda-meta", "--json"
    )
    (result,) = json.loads(told)["results"]
    assert result["tree"] == {}
    assert "steps" not in result


def build(project: Project, *words: object, code: int) -> str:
    """Build a part of the project with other settings, and return what was said."""
    done = run(*TORCHYARD, "build", *words, "-f", project.file)
    assert done.returncode == code, done.stderr
    return done.stderr


def test_a_broken_package_fails_its_check(
    proven: Project, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = f"steps.package={json.dumps(ASTRAY).replace(': ', '=')}"
    with shared_sample(tmp_path_factory) as project:
        words = (f"check:{WHEEL}", "--set", steps, "--store", project.own_store(tmp_path / "store"))
        said = build(project, *words, code=CheckError.exit_code)
    assert f"failed   check:{WHEEL}" in said
    assert "`look into the package` failed with exit code 13" in said
    assert "error linking-" in said
    assert "built    core:" not in said


def own_tests(folder: Path, text: str) -> Path:
    """The tests of the sample project, outside of its source, with one more."""
    tests = folder / "smoke"
    shutil.copytree(SAMPLE / "smoke", tests)
    (tests / "more.py").write_text(f"# level: import\n# about: one more\n{text}", encoding="utf-8")
    return tests


@pytest.mark.slow
def test_a_test_that_fails_fails_its_job_and_only_such_jobs_are_done_again(
    proven: Project, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tests inside of the source are a part of it, and then a changed one is a changed source."""
    tests = own_tests(tmp_path, "raise ValueError('this is why')\n")
    jobs = (f"check:{CONDA}", f"smoke:{CONDA}")
    settings = ("--set", f"smoke.tests={tests}", "--set", "smoke.level=import")
    with shared_sample(tmp_path_factory) as project:
        words = (*jobs, *settings, "--store", project.own_store(tmp_path / "store"))
        said = build(project, *words, code=SmokeError.exit_code)
        (tests / "more.py").write_text("# level: import\n# about: one more\n", encoding="utf-8")
        mended = build(project, *words, code=0)
    assert f"failed   smoke:{CONDA}" in said
    assert "`install and try the package` failed with exit code 14" in said
    assert "ValueError: this is why" in said
    for told in (said, mended):
        assert [line for line in told.splitlines() if line.startswith("started")] == [
            f"started  smoke:{CONDA}"
        ]


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(shutil.which, ("nvcc", "hipcc"))), reason="there is no CUDA or no ROCm here"
)
def test_all_packages_are_proven(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Half an hour: all that the sample's file names, for two BLAS, four Pythons, CUDA and ROCm."""
    with shared_sample(tmp_path_factory) as project:
        channel_for(project, "cp310", "cp311", "cp312", "cp313")
        project.torchyard("build")
        cells = project.torchyard("plan", "--list", "cells").split()
        told = project.torchyard("store", "ls", "check:*", "smoke:*", "--json")
    assert len(cells) == PACKAGES
    made = {result["id"]: result["files"] for result in json.loads(told)["results"]}
    assert set(made) == {f"{stage}:{cell}" for stage in ("check", "smoke") for cell in cells}
    for job, files in made.items():
        wanted = 2 if job.startswith("check:") else 1
        assert files == (0 if job.startswith("smoke:") and job.endswith("/conda-meta") else wanted)
