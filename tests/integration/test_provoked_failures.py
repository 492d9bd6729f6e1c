"""Known failures, provoked with the tools themselves: the diagnosis of what they print is right."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from torchyard.config.failures import load_failures
from torchyard.run.diagnose import diagnose_pieces

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("cmake"), reason="there is no cmake"),
    pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++"),
]

CMAKE = "cmake_minimum_required(VERSION 3.18)\nproject(tiny {languages})\n{rest}\n"
STRING = "#include <string>\nnamespace c10 {{ std::string name(std::string text) {body} }}\n"
LIBRARY = "int tiny() { return 1; }"
PROGRAM = "int tiny(); int main() { return tiny(); }"
LOAD = f"{sys.executable} -c 'import ctypes; ctypes.CDLL(\"./ext.so\")'"
REPOSITORY = """
    git init -q -b main repo && cd repo
    git config user.email a@example.org && git config user.name a
    echo one > file && git add file && git commit -qm one && cd ..
"""


def cmake(rest: str = "", languages: str = "CXX") -> dict[str, str]:
    return {"CMakeLists.txt": CMAKE.format(rest=rest, languages=languages)}


def two_abis(library: int, extension: int) -> str:
    """Compile a library with one C++ ABI, and what uses it with another."""
    flag = "-D_GLIBCXX_USE_CXX11_ABI"
    return f"""
        g++ -shared -fPIC {flag}={library} lib.cpp -o libtorchish.so
        g++ -shared -fPIC {flag}={extension} ext.cpp -o ext.so -L. -ltorchish -Wl,-rpath,$PWD
        {LOAD}
    """


ABI = {
    "lib.cpp": STRING.format(body="{ return text; }"),
    "ext.cpp": STRING.format(body=";") + "auto used = c10::name(std::string());",
}


def lost_library(name: str) -> str:
    return f"""
        g++ -shared -fPIC lib.cpp -Wl,-soname,{name} -o {name}
        g++ -shared -fPIC prog.cpp -o ext.so -L. -l:{name}
        rm {name}; {LOAD}
    """


TINY = {"lib.cpp": LIBRARY, "prog.cpp": PROGRAM}

PROVOKED: dict[str, tuple[str, dict[str, str]]] = {
    # configure
    "submodules-missing": (
        "mkdir third_party; cmake -B b .",
        cmake("add_subdirectory(third_party)"),
    ),
    "cmake-too-old": (
        "cmake -B b .",
        {"CMakeLists.txt": "cmake_minimum_required(VERSION 99.1)\nproject(x)\n"},
    ),
    "stale-cmake-cache-path": (
        "mkdir other; cp CMakeLists.txt other; cmake -B b . -GNinja; cmake -B b other",
        cmake(),
    ),
    "cmake-generator-changed": (
        "cmake -B b . -GNinja >/dev/null; cmake -B b . -G 'Unix Makefiles'",
        cmake(),
    ),
    "cuda-compiler-not-found": (
        "PATH=/usr/bin:/bin CUDACXX=/none/nvcc cmake -B b .",
        cmake(languages="CUDA"),
    ),
    "cmake-package-missing": ("cmake -B b .", cmake("find_package(Tensorwire REQUIRED)")),
    "rocm-package-missing": ("cmake -B b .", cmake("find_package(rocrand REQUIRED)")),
    "cmake-no-generator": (
        "mkdir bin; ln -s $(command -v cmake) bin; PATH=$PWD/bin cmake -B b . -GNinja",
        cmake(),
    ),
    "cmake-no-source": ("mkdir empty; cmake -B b empty", {}),
    "cmake-no-compiler": ("CXX=/none/c++ cmake -B b .", cmake()),
    "cmake-error": ("cmake -B b .", cmake('message(FATAL_ERROR "the moon is full")')),
    # compile
    "python-dev-headers": ("g++ -c a.cpp", {"a.cpp": "#include <Python.h>\n"}),
    "header-missing": ("g++ -c a.cpp", {"a.cpp": '#include "tensorwire.h"\n'}),
    "cuda-headers-missing": (
        "g++ -c a.cpp",
        {"a.cpp": "#include <cublas_v2.h>\n"},
    ),
    "rocm-headers-missing": ("g++ -c a.cpp", {"a.cpp": "#include <hip/hip_runtime.h>\n"}),
    "compiler-error": ("g++ -c a.cpp", {"a.cpp": "int f() { return nothing; }\n"}),
    "unknown-flag": ("g++ -fno-such-flag -c lib.cpp", TINY),
    "werror-third-party": (
        "g++ -O2 -Wall -Werror=uninitialized -c a.cpp",
        {"a.cpp": "int f() { int x; return x; }\n"},
    ),
    "disk-full": ("g++ -c lib.cpp -o /dev/full", TINY),
    "oom-host-compiler": (
        "chmod +x cc1plus; g++ -B . -c lib.cpp",
        TINY | {"cc1plus": "#!/bin/sh\nkill -9 $$\n"},
    ),
    "no-memory": ("ulimit -v 60000; g++ -c a.cpp", {"a.cpp": "#include <regex>\n"}),
    "ninja-no-rule": (
        "ninja",
        {"build.ninja": "rule cp\n command = cp $in $out\nbuild out: cp absent.txt\n"},
    ),
    # link
    "undefined-reference": ("g++ prog.cpp", TINY),
    "library-missing": ("g++ prog.cpp -ltensorwire", TINY),
    "link-lcuda": ("g++ lib.cpp -shared -nodefaultlibs -L/none -lcuda", TINY),
    "multiple-definition": ("g++ prog.cpp lib.cpp again.cpp", TINY | {"again.cpp": LIBRARY}),
    "not-position-independent": (
        "g++ -fno-pic -mcmodel=small -c a.cpp; g++ -shared a.o",
        {"a.cpp": "extern int table[9]; int *f() { return table + 1; }\n"},
    ),
    "relocation-overflow": (
        "g++ -mcmodel=small -fno-pic -no-pie a.cpp b.cpp",
        {
            "a.cpp": "char huge[3L << 30]; char after[9];\n",
            "b.cpp": "extern char huge[], after[]; int main() { return after[1] + huge[1]; }\n",
        },
    ),
    "cxx11-abi-link": (
        """
        g++ -D_GLIBCXX_USE_CXX11_ABI=1 -c lib.cpp
        g++ -D_GLIBCXX_USE_CXX11_ABI=0 ext.cpp main.cpp lib.o
        """,
        ABI | {"main.cpp": "int main() {}\n"},
    ),
    # load
    "cxx11-abi-old-extension": (two_abis(library=1, extension=0), ABI),
    "cxx11-abi-new-extension": (two_abis(library=0, extension=1), ABI),
    "python-abi": (
        f"g++ -shared -fPIC ext.cpp -o ext.so; {LOAD}",
        {"ext.cpp": 'extern "C" void PyTensor_Wire(); auto *used = &PyTensor_Wire;\n'},
    ),
    "library-not-loaded": (
        "g++ -shared -fPIC lib.cpp -o libtiny.so; g++ prog.cpp -L. -ltiny -o app; ./app",
        TINY,
    ),
    "libtorch-lib-missing": (lost_library("libc10.so"), TINY),
    "cuda-lib-missing": (lost_library("libcudart.so.99"), TINY),
    "library-version-missing": (
        """
        echo 'TINY_1 { *; };' > one; echo 'TINY_2 { *; };' > two
        g++ -shared -fPIC lib.cpp -Wl,--version-script=two -o libtiny.so
        g++ prog.cpp -L. -ltiny -Wl,-rpath,$PWD -o app
        g++ -shared -fPIC lib.cpp -Wl,--version-script=one -o libtiny.so; ./app
        """,
        TINY,
    ),
    "wrong-architecture": (
        """
        g++ prog.cpp lib.cpp -o app
        printf '\\363' | dd of=app bs=1 seek=18 conv=notrunc status=none  # RISC-V
        ./app
        """,
        TINY,
    ),
    # git, pip, tests, the machine
    "git-ref-missing": (f"{REPOSITORY}\ngit clone -q -b v9 repo copy", {}),
    "git-conflict": (
        f"""{REPOSITORY}
        cd repo; git checkout -qb b; echo two > file; git commit -qam two
        git checkout -q main; echo three > file; git commit -qam three; git merge b
        """,
        {},
    ),
    "version-from-git": (f"{REPOSITORY}\ncd repo; git describe --tags", {}),
    "network-in-build": ("git clone -q https://tensorwire.invalid/x", {}),
    "torch-not-in-build-env": (f"{sys.executable} -I -S setup.py", {"setup.py": "import torch\n"}),
    "pip-no-package": (f"{sys.executable} -m pip install --no-index tensorwire", {}),
    "wheel-platform-mismatch": (
        f"touch x-1-cp27-cp27m-win32.whl; {sys.executable} -m pip install --no-index *.whl",
        {},
    ),
    "pytest-failed": (
        f"{sys.executable} -m pytest -q -p no:cacheprovider test_one.py",
        {"test_one.py": "def test_one():\n    assert 1 == 2\n"},
    ),
    "segmentation-fault": ("bash -c 'kill -SEGV $$'; true", {}),
    "killed": ("bash -c 'kill -KILL $$'; true", {}),
    "process-limit": (
        f"{sys.executable} -c 'files = [open(\"/dev/null\") for _ in range(10**6)]'",
        {},
    ),
    "command-not-found": ("tensorwire --version", {}),
    "argument-list-too-long": ("/bin/echo $(seq 900000) >/dev/null", {}),
}
"""What is typed, and the files that are there, by the name of the failure."""

CUDA: dict[str, tuple[str, dict[str, str]]] = {
    "nvcc-unsupported-arch": ("nvcc -arch=sm_10 -c a.cu", {"a.cu": "__global__ void f() {}\n"}),
    "gcc-too-new-for-nvcc": (
        "chmod +x g++; nvcc -ccbin ./g++ -c a.cu",
        {
            "a.cu": "__global__ void f() {}\n",
            "g++": '#!/bin/sh\nexec /usr/bin/g++ -U__GNUC__ -D__GNUC__=99 "$@"\n',
        },
    ),
}


def provoke(script: str, files: dict[str, str], folder: Path) -> tuple[str | None, str]:
    """Type a script in a folder; return the name of the diagnosis, and the log."""
    for name, text in files.items():
        (folder / name).write_text(text)
    env = {**os.environ, "LC_ALL": "C", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(folder)}
    for name in ("CXX", "CC", "CUDACXX", "CMAKE_GENERATOR", "PYTEST_ADDOPTS"):
        env.pop(name, None)
    done = subprocess.run(
        ["bash", "-c", dedent(script)],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=120,
    )
    log = done.stdout
    return diagnose_pieces([log], load_failures()).causes[0].name, log.decode(errors="replace")


@pytest.mark.parametrize("name", PROVOKED)
def test_the_diagnosis_of_real_tools(name: str, tmp_path: Path) -> None:
    found, log = provoke(*PROVOKED[name], tmp_path)
    assert found == name, log


@pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")
@pytest.mark.parametrize("name", CUDA)
def test_the_diagnosis_of_nvcc(name: str, tmp_path: Path) -> None:
    found, log = provoke(*CUDA[name], tmp_path)
    assert found == name, log


def test_features_that_are_left_out(tmp_path: Path) -> None:
    """CMake's summary is compared with what was asked for; configure itself succeeds."""
    (tmp_path / "CMakeLists.txt").write_text(
        CMAKE.format(
            languages="NONE",
            rest="set(USE_MKL OFF)\nset(USE_NCCL OFF)\n"
            'message(WARNING "MKL could not be found. Defaulting to Eigen")\n'
            'message(STATUS "  USE_MKL               : ${USE_MKL}")\n'
            'message(STATUS "  USE_NCCL              : ${USE_NCCL}")\n',
        )
    )
    done = subprocess.run(
        ["bash", "-xc", "cmake -B b -DUSE_MKL=ON -DUSE_NCCL=OFF ."],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        timeout=60,
    )
    found = diagnose_pieces([done.stdout], load_failures())
    assert [lost.title for lost in found.lost] == [
        "MKL not found: falls back to Eigen/other BLAS",
        "USE_MKL was asked for and is off",
    ]
    assert found.causes[0].name is None
