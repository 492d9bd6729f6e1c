"""What `torchyard check` says of a compiled module, and what Python does with it."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.support.helpers import Command
from tests.unit.test_broken_extensions import Extension

VERSION = f"{sys.version_info.major}{sys.version_info.minor}"
MODULE = f"demo/_C{sysconfig.get_config_var('EXT_SUFFIX')}"
SYMBOL = "_ZN7fastops10fast_tableEi"
CODE = """\
#include <cmath>
#include <Python.h>
namespace fastops { int fast_table(int); }
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr};
extern "C" PyObject *PyInit__C() {
    PyObject *module = PyModule_Create(&definition);
    PyModule_AddIntConstant(module, "value", fastops::fast_table(3) + (int)std::log2(8.0));
    return module;
}
"""
DEFINED = f"{CODE}int fastops::fast_table(int number) {{ return number; }}\n"


@pytest.mark.parametrize("code", [CODE, DEFINED], ids=["left out", "compiled"])
@pytest.mark.parametrize("linker", ["g++", "gcc"])
def test_check_says_what_python_does(
    torchyard: Command, tmp_path: Path, code: str, linker: str
) -> None:
    """Linked by gcc, it needs functions of libm without its library, which Python has loaded."""
    path = tmp_path / MODULE
    path.parent.mkdir()
    words = [linker, "-x", "c++", "-", "-shared", "-fPIC", "-O1", "-o", str(path)]
    includes = f"-I{sysconfig.get_path('include')}"
    subprocess.run([*words, includes, "-Wl,--build-id"], input=code, text=True, check=True)
    platform = f"linux_{os.uname().machine}"
    wheel = Extension(
        tag=f"cp{VERSION}-cp{VERSION}-{platform}",
        members={MODULE: path.read_bytes()},
        requires=(),
    ).write(tmp_path / "dist")
    done = torchyard("check", wheel, "--rule", "symbols-undefined", "--json")
    found = json.loads(done.out)["packages"][0]["findings"]
    argv = [sys.executable, "-c", "import demo._C; print(demo._C.value)"]
    tried = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (tried.returncode == 0) is (found == []) is (code == DEFINED), tried.stderr
    if found:
        assert f"undefined symbol: {SYMBOL}" in tried.stderr
        assert f"`{SYMBOL}`" in found[0]["what"]
