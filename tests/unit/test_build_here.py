"""`build here`: the cell that fits the active environment, whose torch is never imported."""

import venv
import zipfile
from pathlib import Path

import pytest
from tests.support.helpers import EXTENSION, SMALL, Command, config_of

from torchyard.compute.installed_torch import (
    InstalledTorch,
    PythonEnvironment,
    active_python,
    read_environment,
)
from torchyard.errors import ConfigError, HostError, SelectionError, TorchyardError
from torchyard.features.build.use_case import find_cell, install_command, prepare_here
from torchyard.host.machine import platform_name, python_name
from torchyard.model.recipe import Stage
from torchyard.plan.job_specs import make_job_spec
from torchyard.workspace.build_request import BuildRequest

VERSION_PY = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.13.0'
debug = False
cuda: Optional[str] = '13.0'
hip: Optional[str] = None
"""
LINUX = pytest.mark.skipif(platform_name() != "linux-x86_64", reason="cells are for this platform")


def environment(
    label: str = "2.13.0", python: str = "cp312", compute: str = "cpu"
) -> PythonEnvironment:
    version = label.partition("+")[0]
    torch = InstalledTorch(version=version, label=label, compute=compute, folder="/env/torch")
    versions = {"torch": label} if label else {}
    return PythonEnvironment(
        executable="/env/bin/python",
        python=python,
        versions=versions,
        torch=torch if label else None,
    )


def make_venv(folder: Path) -> Path:
    """Return the site-packages of a new environment, with a torch that can't be imported."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "torch").mkdir()
    (packages / "torch/__init__.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    (packages / "torch/version.py").write_text(VERSION_PY, encoding="utf-8")
    for name, version in (("torch", "2.13.0"), ("My_Ext", "1.0")):
        about = packages / f"{name}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n", encoding="utf-8")
    return packages


def test_an_environment_is_read_without_importing_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = make_venv(tmp_path / "env")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    found = read_environment(active_python())
    assert (found.executable, found.python) == (str(active_python()), python_name())
    assert found.versions == {"torch": "2.13.0", "my-ext": "1.0"}
    assert found.torch is not None
    assert (found.torch.label, found.torch.compute) == ("2.13.0", "cu130")
    (packages / "torch-2.13.0.dist-info/METADATA").unlink()
    again = read_environment(active_python())
    assert (again.torch, "torch" in again.versions) == (found.torch, False)


@LINUX
@pytest.mark.parametrize(
    ("torch", "compute", "path"),
    [
        ("2.13.0", "cu130", "linux-x86_64/cu130-torch2.13/cp312/wheel"),
        ("2.13.1+cpu", "cpu", "linux-x86_64/cpu-torch2.13/cp312/wheel"),
        ("2.14.0", "cu132", "linux-x86_64/cpu-torch2.14/cp312/wheel"),
    ],
)
def test_the_cell_of_an_environment(torch: str, compute: str, path: str) -> None:
    assert find_cell(config_of(EXTENSION), environment(torch, compute=compute)).path == path


@LINUX
@pytest.mark.parametrize(
    ("active", "text", "error", "what", "hint"),
    [
        (environment(""), EXTENSION, HostError, "has no torch", "pip install torch"),
        (
            environment("2.15.0"),
            EXTENSION,
            SelectionError,
            "has torch 2.15.0, and the file has no cell for that, but for torch2.13, torch2.14",
            'add "torch2.15" to `torch` in [matrix], and run `torchyard lock`',
        ),
        (
            environment(python="cp310"),
            EXTENSION,
            SelectionError,
            "has Python cp310, and the file has no cell for that, but for cp311, cp312",
            'add "cp310" to `python` in [matrix]',
        ),
        (
            environment(compute="cu126"),
            EXTENSION.replace('"cpu", ', ""),
            SelectionError,
            "torch is for cu126, and the file has no cell for that, but for cu130",
            'add "cu126" to `compute` in [matrix]',
        ),
        (
            environment(compute="cu771"),
            EXTENSION.replace('"cpu", ', ""),
            SelectionError,
            "torch is for cu771, and the file has no cell for that, but for cu130",
            'add "cu771" to `compute` in [matrix]',
        ),
        (
            environment(),
            EXTENSION.replace('"wheel", ', ""),
            SelectionError,
            "the file has no wheels",
            'add "wheel" to `package` in [matrix]',
        ),
        (
            environment(),
            EXTENSION.replace("linux-x86_64", "linux-aarch64"),
            SelectionError,
            "this machine is linux-x86_64, and the file has no cell for that",
            'add "linux-x86_64" to `platform` in [matrix]',
        ),
    ],
)
def test_what_fits_no_cell_is_an_error_that_says_what_to_do(
    active: PythonEnvironment, text: str, error: type[TorchyardError], what: str, hint: str
) -> None:
    with pytest.raises(error) as caught:
        find_cell(config_of(text), active)
    assert what in str(caught.value)
    assert hint in str(caught.value.diagnostics[0].hint)


def test_only_extensions_are_built_for_a_torch_that_is_there(torchyard: Command) -> None:
    with pytest.raises(ConfigError, match="builds torch itself"):
        find_cell(config_of(SMALL), environment())
    mixed = torchyard("build", "here", "cp312")
    assert "`here` is a single cell, and excludes other selectors" in mixed.err


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"pip": "25"}, "/env/bin/python -m pip install"),
        (
            {"pip": "25", "my-ext": "1.0"},
            "/env/bin/python -m pip install --force-reinstall --no-deps",
        ),
        (
            {"my-ext": "1.0"},
            "uv pip install --python /env/bin/python --reinstall --no-deps",
        ),
        ({"my-ext": "0.9"}, "uv pip install --python /env/bin/python"),
    ],
)
def test_the_command_installs_also_over_the_same_version(
    versions: dict[str, str], words: str
) -> None:
    active = PythonEnvironment(executable="/env/bin/python", python="cp312", versions=versions)
    assert (
        install_command(active, Path("/a b/My_Ext-1.0-x.whl")) == f"{words} '/a b/My_Ext-1.0-x.whl'"
    )


def add_wheel(folder: Path, name: str, version: str, tag: str) -> None:
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as wheel:
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        wheel.writestr(f"{name}-{version}.dist-info/METADATA", about)
        wheel.writestr(f"{name}-{version}.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        wheel.writestr(f"{name}-{version}.dist-info/RECORD", "")


@LINUX
def test_it_is_built_against_exactly_that_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = python_name()
    for version in ("2.13.0", "2.13.0+cpu", "2.13.1"):
        add_wheel(tmp_path, "torch", version, f"{tag}-{tag}-manylinux_2_28_x86_64")
    add_wheel(tmp_path, "setuptools", "80.9.0", "py3-none-any")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "empty").as_uri())
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    for name in ("UV_INDEX", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    make_venv(tmp_path / "env")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    (tmp_path / "project/code").mkdir(parents=True)
    (tmp_path / "project/code/setup.py").touch()
    file = tmp_path / "project/torchyard.toml"
    text = EXTENSION.partition("[matrix]")[2].replace('"cp311", "cp312"', f'"{tag}"')
    text = text.replace('"cpu", "cu130"', '"cpu"')
    start = '[project]\nname = "my-ext"\nversion = "1.0"\nrecipe = "extension"\n'
    source = '[source]\npath = "code"\n[toolchain]\n'
    file.write_text(f"{start}{source}[matrix]{text}", encoding="utf-8")

    said: list[str] = []
    here = prepare_here(BuildRequest(str(file), keep_going=True), say=said.append)
    (job,) = (job for job in here.build.plan.jobs if job.stage is Stage.BINDINGS)
    assert job.path == f"linux-x86_64/cpu-torch2.13/{tag}"
    requires = make_job_spec(here.build.plan, job).task.words("requires")
    assert [line.partition(" ")[0] for line in requires] == ["setuptools==80.9.0", "torch==2.13.0"]
    assert here.build.output == tmp_path / "project/.torchyard/here"
    assert here.build.context.keep_going
    assert "has torch 2.13.0" in said[0]
    assert not file.with_name("torchyard.lock").exists()
