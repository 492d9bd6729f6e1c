"""Modules are imported as users import them: the package's own first, compiled ones after torch."""

import importlib.machinery
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.helpers import ROOT

from torchyard.smoke.attempt import NOTE
from torchyard.smoke.installation import Installation, Installer

TESTS = ROOT / "src/torchyard/data/smoke/any"

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here")

MODULE = """
#include <Python.h>
extern int from_torch(void);
static struct PyModuleDef it = {PyModuleDef_HEAD_INIT, "helpers", 0, -1};
PyMODINIT_FUNC PyInit_helpers(void) { from_torch(); return PyModule_Create(&it); }
"""
"""As `disco_helpers` of torch-harmonics: its libc10.so is found if torch has loaded it before."""

TORCH = """
import ctypes, os
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib/libtorch.so"))
"""


def install(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(text, encoding="utf-8")


def tried(
    folder: Path, modules: str, own: str, test: str = "import.py"
) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "TORCHYARD_SMOKE_MODULES": modules,
        "TORCHYARD_SMOKE_OWN": own,
        "TORCHYARD_SMOKE_SYSTEM": "libc.so ld-linux-x86-64.so",
    }
    argv = [sys.executable, str(TESTS / test)]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def helpers(tmp_path: Path) -> Path:
    """Compile a module that needs a library of torch, which no RPATH leads to."""
    install(tmp_path, torch=TORCH)
    library = tmp_path / "torch/lib/libtorch.so"
    library.parent.mkdir()
    source = tmp_path / "helpers.c"
    source.write_text(MODULE, encoding="utf-8")
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    include = subprocess.check_output(
        [sys.executable, "-c", "import sysconfig as s; print(s.get_path('include'))"], text=True
    ).strip()
    code = "int from_torch(void) { return 0; }"
    shared = ("gcc", "-shared", "-fPIC")
    lib = [*shared, "-Wl,-soname,libtorch.so", "-o", str(library), "-xc", "-"]
    subprocess.run(lib, input=code, text=True, check=True)
    made = [*shared, f"-I{include}", "-o", str(tmp_path / f"helpers{suffix}"), str(source)]
    subprocess.run([*made, str(library)], check=True)
    return tmp_path


@needs_gcc
@pytest.mark.parametrize("test", ["import.py", "libraries.py"])
def test_an_extension_module_is_imported_after_torch(helpers: Path, test: str) -> None:
    install(helpers, whole="import torch, helpers\n")
    for modules, own in (("helpers whole", "whole"), ("helpers", "helpers")):
        done = tried(helpers, modules, own, test)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (helpers / "torch/lib/libtorch.so").unlink()
    install(helpers, torch="")
    done = tried(helpers, "helpers", "helpers", test)
    assert done.returncode == 1
    assert "libtorch.so: cannot open shared object file" in done.stderr


@needs_gcc
def test_a_package_that_forgets_to_import_torch_fails(helpers: Path) -> None:
    """Its users meet the same error."""
    install(helpers, whole="import helpers\n")
    done = tried(helpers, "helpers whole", "whole")
    assert done.returncode == 1
    assert "libtorch.so: cannot open shared object file" in done.stderr


def test_a_module_that_needs_more_than_is_required_is_told(tmp_path: Path) -> None:
    install(tmp_path, whole="", tests="import none_such.sub\n")
    done = tried(tmp_path, "tests whole", "whole")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"{NOTE}not imported, as ")
    assert line.endswith("tests, which needs none_such")
    assert tried(tmp_path, "tests whole", "whole", "libraries.py").returncode == 0


def test_the_package_itself_may_need_no_more_than_it_requires(tmp_path: Path) -> None:
    install(tmp_path, whole="import none_such\n")
    done = tried(tmp_path, "whole", "whole")
    assert done.returncode == 1
    said = "No module named 'none_such': `whole` needs `none_such`, which the package does not"
    assert said in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import whole.gone", "No module named 'whole.gone'"),  # it lacks a file of its own
        ("import torch._six", "No module named 'torch._six'"),  # it is for another torch
        ("from torch import gone", "cannot import name 'gone'"),
        ("import ctypes; ctypes.CDLL('libnone_such.so')", "libnone_such.so: cannot open"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_module_that_is_broken_fails(tmp_path: Path, text: str, error: str) -> None:
    install(tmp_path, torch="", whole="", more=text)
    done = tried(tmp_path, "more whole", "whole")
    assert done.returncode == 1
    assert error in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("distribution", "modules", "own"),
    [
        ("torch-harmonics", ("disco_helpers", "torch_harmonics"), ("torch_harmonics",)),
        ("sphericart-torch", ("sphericart.torch",), ("sphericart.torch",)),
        ("monai-weekly", ("monai", "tests"), ("monai",)),
        ("odd", ("tests",), ("tests",)),
        ("", ("one", "two"), ("one", "two")),
    ],
)
def test_a_package_is_the_module_with_its_name_or_all_that_are_not_stray(
    distribution: str, modules: tuple[str, ...], own: tuple[str, ...]
) -> None:
    made = Installation(
        installer=Installer.UV, prefix="/", distribution=distribution, modules=modules
    )
    assert made.own_modules == own
