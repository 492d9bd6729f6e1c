"""The torch of an environment, found without importing it."""

import sys
from pathlib import Path

import pytest

from torchyard.compute.installed_torch import (
    active_python,
    read_environment,
    read_torch_folder,
)
from torchyard.errors import HostError
from torchyard.host.machine import python_name

TRAP = "raise SystemExit('torch was imported')\n"


def make_torch(at: Path, version: str, **toolkits: str) -> str:
    """Return a folder `torch` whose modules must not run."""
    folder = at / "torch"
    folder.mkdir()
    (folder / "__init__.py").write_text(TRAP, encoding="utf-8")
    lines = [f"__version__ = {version!r}", "debug = False", "git_version = 'abc'"]
    kits = {"cuda": None, "hip": None, **toolkits}
    lines += [f"{name}: Optional[str] = {said!r}" for name, said in kits.items()]
    text = f"from typing import Optional\n{TRAP}" + "\n".join(lines)
    (folder / "version.py").write_text(text, encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("version", "toolkits", "compute"),
    [
        ("2.13.0+cpu", {}, "cpu"),
        ("2.13.0+cu130", {"cuda": "13.0"}, "cu130"),
        ("2.13.0", {"cuda": "12.8"}, "cu128"),
        ("2.13.0+rocm7.2", {"hip": "7.2.26015-fc0010cf6a"}, "rocm7.2"),
        ("2.13.0+xpu", {"xpu": "20250301"}, "xpu"),
        ("2.15.0a0+git1234567", {"cuda": "13.2"}, "cu132"),
        ("2.13.0a0+nv26.10", {"cuda": "13.0"}, "cu130"),
        ("2.13.0", {}, "cpu"),
    ],
)
def test_the_compute_is_what_torch_was_compiled_for(
    tmp_path: Path, version: str, toolkits: dict[str, str], compute: str
) -> None:
    torch = read_torch_folder(make_torch(tmp_path, version, **toolkits))
    assert torch is not None
    assert (torch.compute, torch.label) == (compute, version)
    assert torch.version == version.partition("+")[0]
    assert torch.release == version[:4]


def test_metadata_tells_the_version_of_a_torch_without_its_file(tmp_path: Path) -> None:
    listed = tmp_path / "torch-2.13.0+cu130.dist-info"
    listed.mkdir()
    (listed / "METADATA").write_text("Name: torch\nVersion: 2.13.0+cu130\n", encoding="utf-8")
    torch = read_torch_folder(str(tmp_path / "torch"), str(listed))
    assert torch is not None
    assert (torch.version, torch.compute) == ("2.13.0", "cu130")


def test_a_folder_called_torch_is_not_pytorch(tmp_path: Path) -> None:
    assert read_torch_folder(str(tmp_path)) is None


def test_a_version_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="has the invalid version `unknown`"):
        read_torch_folder(make_torch(tmp_path, "unknown"))


def test_a_python_finds_its_torch_and_does_not_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_torch(tmp_path, "2.13.0+cu130", cuda="13.0")
    monkeypatch.setenv("PYTHONPATH", str(Path(folder).parent))
    found = read_environment(Path(sys.executable))
    assert found.python == python_name()
    assert found.torch is not None
    assert (found.torch.label, found.torch.folder) == ("2.13.0+cu130", folder)


def test_what_is_no_python_is_an_error() -> None:
    with pytest.raises(HostError, match="could not be inspected"):
        read_environment(Path("/bin/echo"))


def test_the_activated_environment_comes_first_then_path_then_the_running_python(
    tmp_path: Path,
) -> None:
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.touch()
    program.chmod(0o755)
    assert active_python({"VIRTUAL_ENV": str(tmp_path)}) == program
    assert active_python({"CONDA_PREFIX": str(tmp_path)}) == program
    assert active_python({"PATH": str(program.parent)}) == program
    assert active_python({}) == Path(sys.executable)
    with pytest.raises(HostError, match=r"VIRTUAL_ENV is .* which has no Python") as caught:
        active_python({"VIRTUAL_ENV": str(tmp_path / "gone")})
    assert "activate the environment" in str(caught.value.diagnostics[0].hint)
