"""The sample is built, checked and imported with the newest Pythons, and without the GIL."""

import os
from pathlib import Path

import pytest
from scripts.pythons import MissingPythonError, provide
from tests.support.recipe import PREFIX, Project, copy_sample

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MATRIX = 'python = ["cp310", "cp311", "cp312", "cp313"]'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = copy_sample(tmp_path_factory.mktemp("project") / "tinytorch")
    text = project.file.read_text(encoding="utf-8")
    assert MATRIX in text
    newer = text.replace(MATRIX, 'python = ["cp313t", "cp314", "cp315"]')
    project.file.write_text(newer, encoding="utf-8")
    return project


@pytest.mark.parametrize("version", ["3.13t", "3.14", "3.15"])
def test_a_wheel_is_built_checked_and_imported(
    project: Project, version: str, tmp_path: Path
) -> None:
    try:
        python = provide(version)
    except MissingPythonError as missing:
        pytest.skip(str(missing))
    tag = f"cp{version.replace('.', '')}"
    env = {"PATH": f"{os.environ['PATH']}{os.pathsep}{python.parent}"}
    cell = f"{PREFIX}/cpu-openblas/{tag}/wheel"
    jobs = [f"{stage}:{cell}" for stage in ("package", "check", "smoke")]
    project.torchyard("build", *jobs, "-o", tmp_path, env=env)
    (wheel,) = tmp_path.glob("*.whl")
    assert f"-{tag.rstrip('t')}-{tag}-" in wheel.name
