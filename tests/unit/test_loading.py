"""Loading an extension beside torch releases; these torches are stand-ins of one library each."""

import sys
from pathlib import Path

import pytest
from tests.support.libraries import compile_library
from tests.support.smoke import change_wheel, make_wheel

from torchyard.smoke.loading import load_beside_torch
from torchyard.smoke.outcome import Outcome, SmokeAttempt
from torchyard.smoke.package_under_test import read_package_under_test

HERE = "{}.{}".format(*sys.version_info)
LOADS_ITS_LIBRARY = """\
import ctypes, pathlib
ctypes.CDLL(str(pathlib.Path(__file__).with_name("libtorch_cpu.so")), ctypes.RTLD_GLOBAL)
"""


def wheel_with(folder: Path, made: Path, dist: str, code: str, **about: str) -> Path:
    """Return a wheel of a module and one library."""
    draft = make_wheel(
        folder.parent,
        {f"{dist}/__init__.py": code, f"{dist}/{made.name}": ""},
        dist=dist,
        **about,
    )
    return change_wheel(draft, folder, {f"{dist}/{made.name}": made})


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an extension that loads with torch 0.2 only, and offer 0.1 and 0.2."""
    found = tmp_path / "index"
    found.mkdir()
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(found))  # uv is given what only pip's variables name
    monkeypatch.setenv("UV_OFFLINE", "1")
    for version, code in {"0.1": "int old;", "0.2": "int old; int fresh;"}.items():
        library = compile_library(tmp_path / version / "libtorch_cpu.so", code)
        wheel_with(found, library, "torch", LOADS_ITS_LIBRARY, version=version)
    compiled = compile_library(tmp_path / "_C.so", "extern int fresh; int *use = &fresh;")
    return wheel_with(found, compiled, "demo", "", requires="torch<0.2")


def tried(wheel: Path, torch: str, folder: Path, python: str = HERE) -> SmokeAttempt:
    return load_beside_torch(
        read_package_under_test(wheel), torch, python, folder / "tried" / python / torch
    )


def test_a_wheel_is_loaded_beside_a_torch_that_it_does_not_admit(
    extension: Path, tmp_path: Path
) -> None:
    assert tried(extension, "0.2", tmp_path).outcome is Outcome.PASSED


def test_the_missing_symbol_is_named(extension: Path, tmp_path: Path) -> None:
    found = tried(extension, "0.1", tmp_path)
    assert (found.outcome, found.why) == (Outcome.FAILED, "_C.so: undefined symbol: fresh")


def test_what_cannot_be_tried_is_not_blamed_on_the_wheel(extension: Path, tmp_path: Path) -> None:
    other_torch = tried(extension, "0.3", tmp_path)
    assert other_torch.outcome is Outcome.NOT_RUN
    assert "torch==0.3" in other_torch.why
    other_python = tried(extension, "0.2", tmp_path, python="2.6")
    assert other_python.outcome is Outcome.NOT_RUN
    assert other_python.why == "there is no Python 2.6 here"


@pytest.mark.parametrize(
    ("library", "outcome"), [("libcuda.so.1", Outcome.PASSED), ("libx.so.1", Outcome.FAILED)]
)
def test_a_driver_may_be_missing(
    extension: Path, tmp_path: Path, library: str, outcome: Outcome
) -> None:
    stub = compile_library(tmp_path / "stub" / library, "int stub;")
    compiled = compile_library(tmp_path / "c" / "_C.so", "int use;", stub)
    wheel = wheel_with(extension.parent, compiled, "demo", "raise SystemExit('no GPU')\n")
    found = tried(wheel, "0.2", tmp_path)
    assert found.outcome is outcome
    assert library in found.why
