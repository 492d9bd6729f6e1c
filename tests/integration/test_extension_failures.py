"""Faults planted into an extension: the first screen names the cause, its file and its line."""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from tests.support.helpers import ROOT, Command, shared_folder
from tests.support.made_wheel import make_wheel
from tests.support.planted_faults import FAULTS

from torchyard.host.locks import locked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
    pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++"),
    pytest.mark.skipif(not shutil.which("cmake"), reason="there is no cmake"),
]

PROJECTS = ROOT / "tests/projects"
SCREEN = 24
"""The lines of a terminal, of 80 columns each, above the prompt."""


def make_torch(folder: Path) -> None:
    """Make a wheel that stands for torch, newer than any of its release."""
    source = PROJECTS / "standintorch"
    text = (source / "torch/__init__.py").read_text("utf-8")
    wheel = make_wheel(folder, "torch", "2.13.99+cpu", text=text)
    subprocess.run(
        ["gcc", "-shared", "-x", "c", "/dev/null", "-o", folder / "libc10.so"], check=True
    )
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.write(folder / "libc10.so", "torch/lib/libc10.so")
        for path in sorted((source / "torch").rglob("*.*")):
            if path.name != "__init__.py" or path.parent.name != "torch":
                archive.write(path, path.relative_to(source))


@pytest.fixture
def project(
    torchyard: Command,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Return the project with its file and lock, which are made once."""
    shared = shared_folder(tmp_path_factory) / "smallops"
    monkeypatch.setenv("UV_FIND_LINKS", str(shared / "wheels"))
    monkeypatch.setenv("COLUMNS", "80")
    with locked(shared.with_suffix(".lock"), wait=True):
        file = shared / "torchyard.toml"
        if not file.exists():
            shutil.copytree(PROJECTS / "smallops", shared)
            make_torch(shared / "wheels")
            cell = "--torch 2.13 --python cp311 --compute cpu --path ."
            names = "--recipe extension --name smallops --version 0.1.0"
            assert torchyard("init", "-f", file, *names.split(), *cell.split()).code == 0
            assert torchyard("lock", "-f", file).code == 0
    folder = tmp_path / "smallops"
    shutil.copytree(shared, folder, ignore=shutil.ignore_patterns("wheels", ".torchyard"))
    monkeypatch.chdir(folder)
    return folder


def first_screen(err: str) -> str:
    """Return what is seen after a build: what it ends with, as far as a terminal has lines."""
    lines = err[err.index("\nerror: ") + 1 :].splitlines()
    assert len(lines) <= SCREEN, err
    assert max(map(len, lines)) <= 80
    return "\n".join(lines)


def in_one_line(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_screen_has_the_cause(torchyard: Command, project: Path, name: str) -> None:
    fault = FAULTS[name]
    fault.plant(project)
    failed = torchyard("build", "package:*")
    assert failed.code in {9, 75}
    shown = first_screen(failed.err)
    assert in_one_line(fault.says) in in_one_line(shown)
    assert in_one_line(fault.where) in in_one_line(shown)
    proposed = re.search(r"In torchyard.toml:\n((?:    .*\n)+)", shown)
    if fault.remedy:
        assert proposed, shown
        add_lines(project / "torchyard.toml", proposed[1])
        assert torchyard("lock").code == 0
        done = torchyard("build", "package:*")
        assert done.code == 0, done.err


def add_lines(file: Path, lines: str) -> None:
    """Type lines at the end of a file; no table that is proposed here is there already."""
    with file.open("a", encoding="utf-8") as text:
        text.write(re.sub(r"^    ", "", lines, flags=re.MULTILINE))


def test_a_project_without_faults_is_built(torchyard: Command, project: Path) -> None:
    done = torchyard("build", "package:*")
    assert done.code == 0, done.err


def test_a_repository_that_is_cloned_can_be_declared(
    torchyard: Command, project: Path, tmp_path: Path
) -> None:
    """The address is out of reach here, so a directory stands for a mirror of it."""
    mirror = tmp_path / "eigen"
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", mirror], check=True)
    (mirror / "eigen.h").touch()
    for words in (["add", "eigen.h"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(mirror), *words], check=True)
    FAULTS["git clone"].plant(project)
    failed = torchyard("build", "package:*")
    proposed = re.search(r"In torchyard.toml:\n((?:    .*\n)+)", failed.err)
    assert proposed, failed.err
    address = '"https://example.org/eigen"'
    assert f"git = {address}" in proposed[1]
    lines = proposed[1].replace(address, f'"{mirror}"\n    instead_of = {address}')
    add_lines(project / "torchyard.toml", lines)
    asked = torchyard("build", "package:*")
    commit = re.search(r"\b[0-9a-f]{40}\b", asked.err)
    assert asked.code, asked.err
    assert commit, asked.err
    add_lines(project / "torchyard.toml", f'    commit = "{commit[0]}"\n')
    done = torchyard("build", "package:*")
    assert done.code == 0, done.err
