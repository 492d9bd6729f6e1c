"""The sample project by itself: both back-ends build it, and only its bindings know a Python."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from tests.support.helpers import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROJECT = ROOT / "tests/projects/tinytorch"
BACKENDS = ["setuptools.build_meta", "scikit_build_core.build"]
NEEDS = ["setuptools", "cmake", "ninja", "scikit-build-core", "scipy-openblas32"]
SWITCHES = ("BLAS", "BUILD_", "CMAKE_", "PYTHON", "PYTORCH_", "TORCH_", "TT_", "USE_")

USE = """
import tinytorch as t
assert t.add([1, 2], [3, 4]) == [4, 6]
assert t.matmul([1, 2, 3, 4], [5, 6, 7, 8], 2, 2, 2) == [19, 22, 43, 50]
assert t.apply("cube", 3) == 27
assert t.get_num_threads() >= 1
assert t.kernel_count() == 8, t.kernel_count()
try:
    t.add([1], [])
except t.Error as error:
    assert "differ by 1" in str(error)
else:
    raise AssertionError
assert (t.version.cuda, t.version.hip) == (None, None)
print(t.__version__, t.version.git_version)
print(t._C._show_config())
"""


class Tools(NamedTuple):
    python: Path
    packages: Path
    openblas: Path
    env: dict[str, str]

    def run(self, *command: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        whole = {**self.env, **env}
        return subprocess.run(
            words, cwd=cwd, env=whole, text=True, check=False, stdout=-1, stderr=-2
        )

    def call(self, *command: object, cwd: Path, **env: str) -> str:
        done = self.run(*command, cwd=cwd, **env)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def wheel(self, backend: str, tree: Path, python: Path, dist: Path) -> str:
        code = f"import {backend} as b; b.build_wheel({str(dist)!r})"
        dist.mkdir()
        return self.call(python, "-c", code, cwd=tree, PYTHONPATH=str(self.packages))


class Built(NamedTuple):
    backend: str
    tree: Path
    wheel: Path


def uv(*args: object) -> None:
    subprocess.run([sys.executable, "-m", "uv", *map(str, args), "--quiet"], check=True)


def compiled(text: str) -> list[str]:
    return re.findall(r"Building \w+ object (\S+)", text)


def only(directory: Path) -> Path:
    (path,) = directory.glob("[!.]*")
    return path


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    venv = tmp_path_factory.mktemp("tools") / "venv"
    python = venv / "bin/python"
    uv("venv", "--python", sys.executable, venv)
    uv("pip", "install", "--python", python, *NEEDS)
    packages = next(venv.glob("lib/python*/site-packages"))
    openblas = packages / "scipy_openblas32"
    env = {key: value for key, value in os.environ.items() if not key.startswith(SWITCHES)} | {
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(openblas / "lib"),
        "OpenBLAS_HOME": str(openblas),
        "CMAKE_BUILD_PARALLEL_LEVEL": "2",
        "MAX_JOBS": "2",
        "BLAS": "OpenBLAS",
        "USE_CUDA": "0",
        "TT_UNITS": "3",
        "TT_GIT_HASH": "0123456789",
    }
    return Tools(python, packages, openblas, env)


@pytest.fixture(scope="module", params=BACKENDS)
def built(
    request: pytest.FixtureRequest, tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Built:
    backend: str = request.param
    tree = tmp_path_factory.mktemp("tree") / "tinytorch"
    shutil.copytree(PROJECT, tree)
    dist = tree.parent / "dist"
    tools.wheel(backend, tree, tools.python, dist)
    return Built(backend, tree, only(dist))


@pytest.fixture(scope="module")
def other_python() -> tuple[Path, Path]:
    """Find a Python of another version, and its headers."""
    beside = Path(sys.base_prefix).parent.glob("*3.*/bin/python3")
    named = (shutil.which(f"python3.{minor}") for minor in range(11, 15))
    ask = "import sys, sysconfig; print(sys.version_info.minor, sysconfig.get_path('include'))"
    for path in [*sorted(beside), *(Path(name) for name in named if name)]:
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if done.returncode:
            continue
        minor, include = done.stdout.split(maxsplit=1)
        headers = Path(include.strip())
        is_other = int(minor) >= 11 and int(minor) != sys.version_info.minor
        if is_other and (headers / "Python.h").exists():
            return path, headers
    pytest.skip("there is only one Python here")


def test_a_wheel_has_all_and_works(tools: Tools, built: Built, tmp_path: Path) -> None:
    with ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("tinytorch/")}
        metadata = wheel.read("tinytorch-1.2.0+git0123456.dist-info/METADATA").decode()
    assert names == {
        *(
            f"tinytorch/{name}"
            for name in (
                "__init__.py",
                "_C.pyi",
                "_preload.py",
                "py.typed",
                "tt_config.py",
                "version.py",
            )
        ),
        *(f"tinytorch/lib/libtt_{name}.so" for name in ("c10", "cpu", "python")),
        *(f"tinytorch/include/c10/{name}.h" for name in ("error", "registry", "version")),
        "tinytorch/include/aten/math.h",
        "tinytorch/bin/tt_info",
        "tinytorch/version.pyi",
        *(name for name in names if re.fullmatch(r"tinytorch/_C\.cpython-.*\.so", name)),
        *(name for name in names if name.startswith("tinytorch/share/cmake/TinyTorch/")),
    }
    assert "tinytorch/share/cmake/TinyTorch/TinyTorchConfig.cmake" in names
    assert "Requires-Python: >=3.10\n" in metadata
    assert "Requires-Dist: typing-extensions>=4.10\n" in metadata

    python = tmp_path / "venv/bin/python"
    uv("venv", "--python", sys.executable, tmp_path / "venv")
    uv("pip", "install", "--python", python, built.wheel)
    said = tools.call(python, "-c", USE, cwd=tmp_path)
    assert said.startswith("1.2.0+git0123456 0123456789\n")
    assert "BLAS_INFO=open" in said

    told = tools.call(tmp_path / "venv/bin/tt-config", cwd=tmp_path)
    (prefix,) = re.findall(r"CMAKE_PREFIX_PATH=(.*)", told)
    user = ("cmake", "-G", "Ninja", "-S", PROJECT / "cpp_user", "-B", "user")
    tools.call(*user, f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    tools.call("cmake", "--build", "user", cwd=tmp_path)
    assert tools.call("user/cpp_user", cwd=tmp_path).startswith("4 6\n19 22 43 50\nadd: ")


def test_another_python_compiles_only_the_bindings(
    tools: Tools, built: Built, other_python: tuple[Path, Path], tmp_path: Path
) -> None:
    python, headers = other_python
    new = (f"-DPython_EXECUTABLE={python}", f"-DPython_INCLUDE_DIR={headers}")
    tools.call("cmake", "-U", "Python*", *new, "build", cwd=built.tree)
    objects = compiled(tools.call("ninja", "-C", "build", cwd=built.tree))
    assert len(objects) == 4
    assert all(name.startswith("csrc/") for name in objects)

    assert compiled(tools.wheel(built.backend, built.tree, python, tmp_path / "dist")) == []
    other = only(tmp_path / "dist")
    assert other.name != built.wheel.name
    with ZipFile(built.wheel) as first, ZipFile(other) as second:
        for name in ("c10", "cpu"):
            library = f"tinytorch/lib/libtt_{name}.so"
            assert first.read(library) == second.read(library)
        names = set(first.namelist()) ^ set(second.namelist())
    assert len(names) == 2
    assert all(name.startswith("tinytorch/_C.cpython-") for name in names)


def test_no_core_target_knows_the_python(tools: Tools, built: Built) -> None:
    text = tools.call("ninja", "-C", "build", "-t", "commands", "core", cwd=built.tree)
    lines = [line for line in text.splitlines() if "gen.py" not in line]
    assert any("unit_3.cpp" in line for line in lines)
    for line in lines:
        rest = line.replace(str(tools.packages), "").replace(str(built.tree), "")
        assert "python" not in rest.lower(), line


def test_what_is_missing_goes_unsaid_but_for_a_submodule(tools: Tools, tmp_path: Path) -> None:
    tree = tmp_path / "tinytorch"
    shutil.copytree(PROJECT, tree)
    configure = ("cmake", "-G", "Ninja", "-S", ".", "-B", "build")
    lacking = {"USE_CUDA": "1", "CUDA_HOME": "/nowhere", "BLAS": "MKL", "MKLROOT": "/nowhere"}
    nothing_of_the_system = {"CMAKE_FIND_USE_CMAKE_SYSTEM_PATH": "OFF"}
    said = tools.call(*configure, cwd=tree, **lacking, **nothing_of_the_system)
    assert "Warning" not in said
    cache = (tree / "build/CMakeCache.txt").read_text("utf-8").splitlines()
    assert {"USE_CUDA:BOOL=OFF", "BLAS_INFO:STRING=none", "TT_UNITS:STRING=3"} <= set(cache)

    (tree / "third_party/magma/CMakeLists.txt").unlink()
    failed = tools.run(*configure, cwd=tree)
    assert failed.returncode == 1
    assert "magma is missing; run git submodule update --init --recursive" in failed.stdout


def test_unstable_labels_differ_in_the_symbol_table_only(
    tools: Tools, built: Built, tmp_path: Path
) -> None:
    tools.call("cmake", "-DTT_UNSTABLE_LABELS=ON", "build", cwd=built.tree)
    tools.call("cmake", "--install", "build", "--prefix", tmp_path, cwd=built.tree)
    library, plain = tmp_path / "lib/libtt_cpu.so", built.tree / "build/lib/libtt_cpu.so"
    assert len(re.findall(r" t nnp_label_\w+", tools.call("nm", library, cwd=tmp_path))) == 1
    for path, name in ((library, "labelled"), (plain, "plain")):
        tools.call("objcopy", "--strip-all", path, tmp_path / name, cwd=tmp_path)
    assert (tmp_path / "labelled").read_bytes() == (tmp_path / "plain").read_bytes()
