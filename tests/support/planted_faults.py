"""Faults planted into an extension: what is changed, and what the error has to say of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

CMAKE_SETUP = """\
import subprocess
from pathlib import Path

import torch.utils
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        build = Path(self.build_temp).resolve()
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        subprocess.check_call(
            ["cmake", "-S", ".", "-B", build, "-G", "Ninja", f"-DTARGET={target.parent}",
             f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"]
        )
        subprocess.check_call(["cmake", "--build", build])


setup(
    packages=["smallops"],
    ext_modules=[Extension("smallops._C", [])],
    cmdclass={"build_ext": CMakeBuild},
)
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(smallops CXX)
find_package(Torch REQUIRED)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
# here
Python_add_library(_C MODULE WITH_SOABI csrc/ops.cpp csrc/twice.cpp)
target_link_libraries(_C PRIVATE ${TORCH_LIBRARIES})
set_target_properties(_C PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${TARGET})
"""


class Fault(NamedTuple):
    """A fault: texts that are replaced or files that are written, and what the error must name.

    `where` is the file and line that it must name. `remedy` is whether lines are proposed for
    `torchyard.toml`, which must help.
    """

    change: Mapping[str, tuple[str, str] | str]
    says: str
    where: str = ""
    remedy: bool = False

    def plant(self, folder: Path) -> None:
        """Change the project in a directory."""
        for name, change in self.change.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(change, str):
                path.write_text(change, encoding="utf-8")
                path.chmod(0o755 if name.startswith("bin/") else 0o644)
                continue
            text = path.read_text("utf-8")
            assert change[0] in text
            path.write_text(text.replace(*change), encoding="utf-8")


def _setup(line: str, says: str, *, remedy: bool = False) -> Fault:
    """Return the fault that a line of setup.py is."""
    change = {"setup.py": (_SETUP, f"{_SETUP}{line}\n")}
    return Fault(change, says, f"setup.py:{2 + line.count(chr(10))}", remedy)


def _option(option: str, says: str, *, remedy: bool = False) -> Fault:
    """Return the fault that an option of the extension is."""
    return Fault({"setup.py": (_SOURCES, f"{_SOURCES}, {option}")}, says, "setup.py:6", remedy)


def _cmake(line: str, says: str, *, remedy: bool = False, setup: str = CMAKE_SETUP) -> Fault:
    """Return the fault that a line of CMakeLists.txt is."""
    change = {"setup.py": setup, "CMakeLists.txt": CMAKE.replace("# here", line)}
    return Fault(change, says, f"CMakeLists.txt:{5 + line.count(chr(10))}", remedy)


_SETUP = "from setuptools import setup\n"
_SOURCES = '["csrc/ops.cpp", "csrc/twice.cpp"]'
_TWICE = '#include "twice.h"\n'
_KEPT = ("  return", "  std::unique_ptr<long> kept;\n  return")
_ADDRESS = "https://example.org/eigen"
_FETCH = f"""\
include(FetchContent)
FetchContent_Declare(eigen GIT_REPOSITORY {_ADDRESS} GIT_TAG v3)
FetchContent_MakeAvailable(eigen)"""
_LIMIT = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (60 << 20, 60 << 20))"
_IS_CPU = "smallops needs CUDA 12.8"

FAULTS = {
    # the compiler
    "a name that is not declared": Fault(
        {"csrc/twice.cpp": ("number + number", "number + much")},
        "was not declared in this scope",
        "csrc/twice.cpp:4",
    ),
    "a header that is missing": Fault(
        {"csrc/ops.cpp": (_TWICE, '#include "thrice.h"\n')},
        "A header is missing: thrice.h",
        "csrc/ops.cpp:3",
    ),
    "#include <memory>": Fault(
        {"csrc/twice.cpp": _KEPT}, "lacks #include <memory>", "csrc/twice.cpp:4", remedy=True
    ),
    "#include <memory>, with CMake": Fault(
        {"csrc/twice.cpp": _KEPT, "setup.py": CMAKE_SETUP, "CMakeLists.txt": CMAKE},
        "lacks #include <memory>",
        "csrc/twice.cpp:4",
        remedy=True,
    ),
    "an old C++ standard": _option(
        'extra_compile_args=["-std=c++14"]', "an older C++ standard than torch needs", remedy=True
    ),
    "-Werror": Fault(
        {
            "setup.py": (_SOURCES, f'{_SOURCES}, extra_compile_args=["-Wall", "-Werror"]'),
            "csrc/twice.cpp": ("  return", "  int unused;\n  return"),
        },
        "A warning is an error here: -Wunused-variable",
        "csrc/twice.cpp:4",
        remedy=True,
    ),
    "an unknown flag": _option(
        'extra_compile_args=["-fno-such-flag", "-O1"]',
        "does not know the flag -fno-such-flag",
        remedy=True,
    ),
    "a variable that is not set": _setup(
        "import os\nos.environ['SMALLOPS_MODE']", "variable SMALLOPS_MODE", remedy=True
    ),
    "a variable that is asked for": _setup(
        "import os\nif 'SMALL_MODE' not in os.environ:\n"
        "    raise RuntimeError('SMALL_MODE env var must be set for builds')",
        "variable SMALL_MODE",
        remedy=True,
    ),
    "another torch": Fault(
        {
            "csrc/ops.cpp": (
                _TWICE,
                f"{_TWICE}#if TORCH_VERSION_MINOR > 12\n#error torch 2.13 is too new\n#endif\n",
            )
        },
        "torch 2.13 is too new",
        "csrc/ops.cpp:5",
    ),
    "a header of CUDA": Fault(
        {"csrc/ops.cpp": (_TWICE, "#include <cuda_runtime.h>\n")},
        "cuda_runtime.h is CUDA's",
        "csrc/ops.cpp:3",
    ),
    "a source that is missing": Fault(
        {"setup.py": ("csrc/twice.cpp", "csrc/twise.cpp")},
        "The file twise.cpp is missing",
        "setup.py:6",
    ),
    "a compiler that is killed": Fault(
        {
            "setup.py": (
                _SOURCES,
                f'{_SOURCES}, extra_compile_args=["-B/mnt/torchyard/build/bin/"]',
            ),
            "bin/cc1plus": "#!/bin/sh\nkill -9 $$\n",
        },
        "The host compiler was killed (out of memory)",
        "csrc/",
    ),
    "memory that can't be allocated": _setup(_LIMIT, "Memory can't be allocated")._replace(
        where="csrc/"
    ),
    "a build that is killed": _setup(
        "import os\nos.kill(os.getpid(), 9)", "A process was killed from outside"
    )._replace(where=""),
    "a full disk": _setup("print(1, file=open('/dev/full', 'w'), flush=True)", "is full"),
    # the linker
    "a library that is missing": _option(
        'libraries=["nosuchlib"]', "A library is missing at link time: nosuchlib"
    ),
    "a symbol that is defined twice": Fault(
        {
            "csrc/ops.cpp": (
                "static PyMethodDef",
                "long twice(long) { return 0; }\nstatic PyMethodDef",
            )
        },
        "defined twice: twice(long)",
        "csrc/ops.cpp:9",
    ),
    # setup.py
    "a NameError": Fault(
        {"setup.py": (_SOURCES, "SOURCES")}, "name 'SOURCES' is not defined", "setup.py:6"
    ),
    "a SyntaxError": Fault(
        {"setup.py": (",\n    ext", "\n    ext")}, "Perhaps you forgot a comma?", "setup.py:5"
    ),
    "an undeclared requirement": _setup(
        "import numpy", "The build imports numpy, and does not require it", remedy=True
    ),
    "pybind11": _setup(
        "from pybind11.setup_helpers import Pybind11Extension", "imports pybind11", remedy=True
    ),
    "a program that is missing": _setup(
        "import subprocess\nsubprocess.run(['meson', '--version'])",
        "A command is missing: meson",
        remedy=True,
    ),
    "no Rust": _setup("import subprocess\nsubprocess.run(['cargo', 'build'])", "Rust is missing"),
    "no code for the CPU": Fault(
        {"setup.py": ("CppExtension", "CUDAExtension")}, "CUDA_HOME is not set", "setup.py:6"
    ),
    "another CUDA": _setup(
        f"import torch\nassert torch.version.cuda == '12.8', '{_IS_CPU}'", _IS_CPU
    ),
    "a script without its x bit": _setup(
        "import subprocess\nopen('x.sh', 'w').close()\nsubprocess.run(['./x.sh'])", "'./x.sh'"
    ),
    "a file outside of the build": _setup(
        "open('/usr/include/smallops.h', 'w')", "Read-only file system: '/usr/include/smallops.h'"
    ),
    "a package without its directory": Fault(
        {"setup.py": ('["smallops"]', '["smallops", "smallops.data"]')},
        "The package directory smallops/data does not exist",
        "setup.py:5",
    ),
    "a version that is none": Fault(
        {"pyproject.toml": ('"0.1.0"', '"0.1.x"')}, "pyproject.toml is refused", "pyproject.toml:7"
    ),
    "an exit with a message": _setup(
        "raise SystemExit('smallops needs libfoo')", "smallops needs libfoo"
    ),
    "an exit code that torchyard has, too": _setup(
        "print('ERROR: smallops needs libfoo')\nraise SystemExit(3)", "smallops needs libfoo"
    )._replace(where="setup.py:2"),
    "a switch that is not set": Fault(
        {
            "setup.py": (
                "ext_modules=[",
                'ext_modules=__import__("os").environ.get("BUILD_SMALLOPS", "0") == "1" and [',
            )
        },
        "compiled nothing",
        "BUILD_SMALLOPS (setup.py:6)",
        remedy=True,
    ),
    # downloads
    "urllib": _setup(
        f"from urllib.request import urlretrieve\nurlretrieve('{_ADDRESS}', 'eigen')", _ADDRESS
    ),
    "git clone": _setup(
        f"import subprocess\nsubprocess.check_call(['git', 'clone', '{_ADDRESS}'])", _ADDRESS
    ),
    "FetchContent": _cmake(_FETCH, _ADDRESS),
    # CMake
    "an old CMake": _cmake("cmake_minimum_required(VERSION 3.28)", "CMake is too old", remedy=True),
    "a submodule that is missing": _cmake(
        "file(MAKE_DIRECTORY third_party/fmt)\nadd_subdirectory(third_party/fmt)",
        "Submodules were not checked out: third_party/fmt",
    ),
    "a torch that CMake does not find": _cmake(
        "",
        "CMake does not find Torch",
        remedy=True,
        setup=CMAKE_SETUP.replace("{torch.utils.cmake_prefix_path}", ""),
    )._replace(where="CMakeLists.txt:3"),
    "a package that CMake does not find": _cmake(
        "find_package(OpenCV REQUIRED)", "CMake does not find the package OpenCV"
    ),
    "a library that CMake does not find": _cmake(
        "find_package(CUDAToolkit REQUIRED)", "CMake does not find the package CUDAToolkit"
    ),
    "a message of CMake": _cmake(
        'message(FATAL_ERROR "smallops needs AVX-512")', "smallops needs AVX-512"
    ),
}
