"""The launcher that compiles empty units, which the tests of real trees compile with."""

import subprocess
from pathlib import Path

import pytest
from tests.support.helpers import ROOT

LAUNCHER = ROOT / "tests/projects/pytorch-empty/empty-unit"
EMPTY = LAUNCHER.parent


def compiled(folder: Path, *words: str) -> str:
    """Return the unit that is compiled in place of the one that a command names last."""
    line = (str(LAUNCHER), "printf", "%s\n", *words)
    said = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True)
    assert said.stderr == ""
    *before, unit = said.stdout.split()
    assert before == list(words[:-1])
    return unit


@pytest.mark.parametrize(
    ("source", "unit"),
    [
        ("/src/aten/src/ATen/Context.cpp", f"{EMPTY}/empty.cpp"),
        ("/src/third_party/onnx/onnx/checker.cc", f"{EMPTY}/empty.cpp"),
        ("/src/third_party/cpuinfo/src/api.c", f"{EMPTY}/empty.c"),
        ("/src/aten/src/ATen/native/q8gemm.S", f"{EMPTY}/empty.S"),
        ("/src/c10/core/Device.cpp", "/src/c10/core/Device.cpp"),
        ("/src/sleef/src/libm/mkrename.c", "/src/sleef/src/libm/mkrename.c"),
        ("/src/sleef/src/libm/sleefsimddp.c", f"{EMPTY}/empty.c"),
    ],
)
def test_the_source_decides_what_is_compiled(source: str, unit: str, tmp_path: Path) -> None:
    """Neither where the object goes, nor include directories, nor what a definition says."""
    words = ("-DTOOL=/sleef/src/mk.c", "-I/src/c10/core", "-o", "c10/x.cpp.o", "-c", source)
    assert compiled(tmp_path, *words) == unit


def test_what_cmake_tries_is_compiled(tmp_path: Path) -> None:
    folder = tmp_path / "build/CMakeFiles/CMakeScratch/TryCompile-1"
    folder.mkdir(parents=True)
    assert compiled(folder, "-o", "try.o", "-c", "/src/try.c") == "/src/try.c"


def test_other_commands_are_as_they_are(tmp_path: Path) -> None:
    assert compiled(tmp_path, "-E", "/src/one.cpp") == "/src/one.cpp"
