"""A machine that is ready for a build by hand, and the ways in which tests break it.

Everything is in temporary directories and in variables. Compilers, CMake, ninja, git and Python are
real; a few are scripts that say another version and pass everything else on. What can't exist here
is a stand-in, and is called so: GPUs' drivers, hipcc, other CUDA toolkits.
"""

import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from torchyard.compute.cuda import machine_checks
from torchyard.config.tables import load_tables
from torchyard.doctor.bench import Bench, BuildDemand
from torchyard.doctor.check import MachineFinding
from torchyard.doctor.checks import network, resources
from torchyard.doctor.tree import read_tree
from torchyard.engines.admission import all_machine_checks, examine
from torchyard.host.machine import platform_name
from torchyard.host.memory import Memory
from torchyard.model.severity import Severity

SYSTEM = "/usr/bin:/bin"
_TREE = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.18 FATAL_ERROR)\nproject(Torch)\n"
    "if(CMAKE_COMPILER_IS_GNUCXX AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 9.3)\nendif()\n",
    "version.txt": "2.6.0a0\n",
    "torch/csrc/Module.cpp": "",
    "pyproject.toml": '[build-system]\nrequires = ["packaging", "cmake", "ninja"]\n',
    ".gitmodules": '[submodule "fmt"]\n\tpath = third_party/fmt\n\turl = ../fmt\n',
    "third_party/fmt/CMakeLists.txt": "",
}
_VERSIONS = {
    "cmake": "cmake version 3.25.1",
    **dict.fromkeys(("cc", "c++", "gcc", "g++"), "12.2.0"),
}
"""What this machine's programs say they are: its own may be too new for a torch or a CUDA."""
_BLAS = {"include/cblas.h": "", "lib/libopenblas.so": ""}


class World:
    """A shell in a checkout of torch."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.tree = folder / "pytorch"
        self.first = folder / "first"
        self.venv = folder / "venv"
        self.system = Path("/")
        self.computes: tuple[str, ...] = ("cpu",)
        self.first.mkdir()
        write(self.tree, _TREE)
        write(folder / "openblas", _BLAS)
        (self.venv / "bin").mkdir(parents=True)
        self.script("python", f'exec {sys.executable} "$@"', folder=self.venv / "bin")
        for name, version in _VERSIONS.items():
            self.says(name, version, f"/usr/bin/{name}", self.venv / "bin")
        for name in ("ninja", "git"):
            (self.venv / "bin" / name).symlink_to(shutil.which(name) or name)
        self.env = {
            "PATH": f"{self.first}:{self.venv}/bin:{SYSTEM}",
            "HOME": str(folder),
            "OpenBLAS_HOME": str(folder / "openblas"),
        }
        usage = shutil.disk_usage("/")
        roomy = usage._replace(free=10**12)
        monkeypatch.setattr(shutil, "disk_usage", lambda place: roomy)
        monkeypatch.setenv("UV_OFFLINE", "1")
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        monkeypatch.setattr(resources, "read_memory", lambda root: Memory(10**11, 10**11))
        monkeypatch.setattr(machine_checks, "glibc_version", lambda: "2.36")

    def script(self, name: str, text: str, folder: Path | None = None) -> Path:
        """Put a script on PATH, before everything else."""
        path = (folder or self.first) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def says(self, name: str, version: str, real: str, folder: Path | None = None) -> Path:
        """Put a program on PATH that says another version, and does what the real one does."""
        text = f'case "$1" in --version|-dumpfullversion) echo "{version}";; '
        return self.script(name, f'{text}*) exec {real} "$@";; esac', folder)

    def library(self, place: Path, code: str, *options: str) -> Path:
        """Compile a small library."""
        place.parent.mkdir(parents=True, exist_ok=True)
        source = self.folder / "library.c"
        source.write_text(code, encoding="utf-8")
        call = ["gcc", "-shared", "-fPIC", "-o", str(place), str(source), *options]
        subprocess.run(call, check=True)
        return place

    def bench(self) -> Bench:
        """The machine as doctor sees it now."""
        facts = read_tree(self.tree)
        demand = BuildDemand(
            title="a test",
            release=facts.release,
            is_torch=facts.is_torch,
            computes=self.computes,
            blas_names=load_tables().platforms[platform_name()].blas,
            source=str(self.tree),
            work=str(self.tree),
        )
        return Bench(demand, self.env, system=self.system)

    def findings(self, *names: str) -> list[MachineFinding]:
        """What some checks find, or all; notes do not count."""
        checks = all_machine_checks()
        chosen = [checks[name] for name in names] if names else checks.values()
        found = examine(self.bench(), chosen).findings
        return [one for one in found if one.severity is not Severity.NOTE]

    def type(self, command: str) -> None:
        """Type a command in the shell of this world."""
        script = f"set -e\n{command}\nenv -0 > {self.folder}/variables"
        bash = ["bash", "-c", script]
        done = subprocess.run(bash, env=self.env, cwd=self.tree, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        entries = (self.folder / "variables").read_text(encoding="utf-8").split("\0")
        shell = dict(entry.partition("=")[::2] for entry in entries if entry)
        own = {"SHLVL", "PWD", "_", "OLDPWD"}
        self.env = {name: text for name, text in shell.items() if name not in own}

    def mend(self, findings: Sequence[MachineFinding], spoil: "Sabotage") -> None:
        """Type each cure; or do what its installer would do."""
        if spoil.installs is not None:
            spoil.installs(self)
            return
        for one in findings:
            assert not one.system, "tests install nothing on this machine"
            self.type(one.cure)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


class Sabotage(NamedTuple):
    """A way to break a machine, the check that names it, and a part of what is said.

    A cure that is typed in a shell is typed. If it `installs` something, which needs a network and
    minutes, this does what the installer would have done; `types` is how the command begins.
    """

    spoil: Callable[[World], None]
    check: str
    says: str
    types: str
    installs: Callable[[World], None] | None = None


SABOTAGES: dict[str, Sabotage] = {}


def sabotage(
    check: str, says: str, types: str, installs: Callable[[World], None] | None = None
) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Register a way to break a machine."""

    def decorate(spoil: Callable[[World], None]) -> Callable[[World], None]:
        name = spoil.__name__.replace("_", "-")
        SABOTAGES[name] = Sabotage(spoil, check, says, types, installs)
        return spoil

    return decorate


# -------------------------------------------------------------------------- build tools


@sabotage("cmake", "CMake is 2.8.12", "export PATH=")
def old_cmake(world: World) -> None:
    world.says("cmake", "cmake version 2.8.12", "/usr/bin/cmake")


@sabotage("cmake", "takes >=3.18,<4", "export PATH=")
def cmake_4_with_torch_2_6(world: World) -> None:
    world.says("cmake", "cmake version 4.1.2", "/usr/bin/cmake")


@sabotage("cmake", "ModuleNotFoundError", "export PATH=")
def cmake_of_another_python(world: World) -> None:
    world.script("cmake", "echo \"ModuleNotFoundError: No module named 'cmake'\" >&2; exit 1")


def _pip_cmake(world: World) -> None:
    (world.first / "cmake").unlink()


@sabotage("cmake", "was reported as broken", "python -m pip install 'cmake==3.26.*'", _pip_cmake)
def cmake_3_30_with_torch_2_4_for_rocm(world: World) -> None:
    stand_in_rocm(world)
    write(world.tree, {"version.txt": "2.4.1"})
    world.says("cmake", "cmake version 3.30.3", "/usr/bin/cmake")


def _pip_ninja(world: World) -> None:
    (world.venv / "bin/ninja").symlink_to(shutil.which("ninja") or "ninja")


@sabotage("ninja", "no `ninja` on PATH", "python -m pip install ninja", _pip_ninja)
def no_ninja(world: World) -> None:
    (world.venv / "bin/ninja").unlink()
    bare = world.folder / "bare"
    bare.mkdir()
    for name in ("sh", "bash", "env", "gcc", "g++", "cc", "c++", "as", "ld", "git", "cmake"):
        (bare / name).symlink_to(shutil.which(name, path=SYSTEM) or name)
    world.env["PATH"] = f"{world.first}:{world.venv}/bin:{bare}"


@sabotage("compiler-cache", "which does not exist", "unset CMAKE_CXX_COMPILER_LAUNCHER")
def launcher_that_is_gone(world: World) -> None:
    world.env["CMAKE_CXX_COMPILER_LAUNCHER"] = str(world.folder / "gone/ccache")


# --------------------------------------------------------------------------- compilers


@sabotage("compiler", "as CC says", "unset CC")
def compiler_that_is_gone(world: World) -> None:
    world.env["CC"] = "/opt/gone/bin/gcc"


@sabotage("compiler", "and the C++ compiler clang 14.0.6", "export CC=")
def c_and_cpp_of_two_compilers(world: World) -> None:
    world.env["CXX"] = str(world.says("clang++", "clang version 14.0.6", "/usr/bin/g++"))


@sabotage("compiler", "the compiler is gcc 7.5.0", "export CC=")
def gcc_too_old_for_the_tree(world: World) -> None:
    for name in ("gcc", "g++"):
        world.says(name, "7.5.0", f"/usr/bin/{name}")
    world.env |= {"CC": "gcc", "CXX": "g++"}


@sabotage("compiler", "makes no program that runs", "unset CPATH")
def headers_of_another_compiler(world: World) -> None:
    write(world.folder / "strange", {"exception": "#error these are headers of another compiler\n"})
    world.env["CPATH"] = str(world.folder / "strange")


def _gomp(world: World) -> None:
    (world.first / "c++").unlink()


@sabotage("openmp", "has no OpenMP", "apt-get install", _gomp)
def compiler_without_openmp(world: World) -> None:
    refuse = "case \"$*\" in *-fopenmp*) echo 'fatal error: omp.h: No such file' >&2; exit 1;; esac"
    world.script("cc", 'exec /usr/bin/cc "$@"')
    world.script("c++", f'{refuse}\nexec /usr/bin/c++ "$@"')


# ------------------------------------------------------------------------------ Python


def _answering(world: World, **changed: str) -> None:
    """Make `python` describe itself otherwise than it is."""
    edits = "; ".join(f"said[{name!r}] = {text!r}" for name, text in changed.items())
    code = (
        f"import json, sys; said = json.loads(sys.stdin.read()); {edits}; print(json.dumps(said))"
    )
    real = sys.executable
    world.script(
        "python",
        f'case "$1" in -I) {real} "$@" | {real} -c "{code}";; *) exec {real} "$@";; esac',
        folder=world.venv / "bin",
    )


def _python_dev(world: World) -> None:
    world.script("python", f'exec {sys.executable} "$@"', folder=world.venv / "bin")


@sabotage("python", "has no headers in", "apt-get install", _python_dev)
def python_without_headers(world: World) -> None:
    code = "import platform; print(platform.python_version())"
    known = subprocess.check_output(["/usr/bin/python3", "-c", code], text=True).strip()
    _answering(world, include="/nonexistent/include", version=known)  # apt has no other version


@sabotage("python", "Python is 3.7.17", "", _python_dev)
def python_too_old_for_the_tree(world: World) -> None:
    _answering(world, version="3.7.17")


def _pip_requirement(world: World) -> None:
    write(world.tree, {"pyproject.toml": '[build-system]\nrequires = ["packaging"]\n'})


@sabotage(
    "build-requirements", "lacks torch-build-helper>=2, numpie", "python -m pip", _pip_requirement
)
def requirement_of_the_build_missing(world: World) -> None:
    requires = '["packaging", "torch-build-helper>=2", "numpie"]'
    write(world.tree, {"pyproject.toml": f"[build-system]\nrequires = {requires}\n"})


# ------------------------------------------------------------------- PATH and libraries


@sabotage("conda-prefix", "is on PATH, and Python is", "export PATH=")
def conda_environment_that_shadows(world: World) -> None:
    (world.folder / "conda/conda-meta").mkdir(parents=True)
    (world.folder / "conda/bin").mkdir()
    world.env["PATH"] = f"{world.folder}/conda/bin:{world.env['PATH']}"


@sabotage("conda-prefix", "but the build uses the compiler", "export CC=")
def compiler_of_conda_that_is_not_taken(world: World) -> None:
    prefix = world.folder / "env"
    for end in ("gcc", "g++"):
        name = f"x86_64-conda-linux-gnu-{end}"
        world.script(name, f'exec /usr/bin/{end} "$@"', folder=prefix / "bin")
    world.env["CONDA_PREFIX"] = str(prefix)


@sabotage("path-order", "not that of the activated environment", "export PATH=")
def environment_that_is_not_first(world: World) -> None:
    world.env["VIRTUAL_ENV"] = str(world.venv)
    world.script("python", f'exec {sys.executable} "$@"')


@sabotage("library-path", "is loaded instead of", "unset LD_LIBRARY_PATH")
def old_library_on_ld_library_path(world: World) -> None:
    folder = world.folder / "poison"
    world.library(folder / "libgomp.so.1", "int gomp;", "-Wl,-soname,libgomp.so.1")
    world.env["LD_LIBRARY_PATH"] = str(folder)


@sabotage("library-path", "libc10.so of another torch", "unset LD_LIBRARY_PATH")
def another_torch_on_ld_library_path(world: World) -> None:
    world.library(world.folder / "torch/lib/libc10.so", "int c10;")
    world.env["LD_LIBRARY_PATH"] = str(world.folder / "torch/lib")


# ---------------------------------------------------------------------------- resources


def _recorded(world: World, limit: int) -> None:
    """Record a machine of 64 GB, on which a cgroup has a limit."""
    world.monkeypatch.undo()
    world.system = world.folder / "system"
    group = {"memory.max": f"{limit}\n", "memory.current": "1000000\n"}
    write(world.system / "sys/fs/cgroup/build", group)
    memory = "MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\n"
    write(world.system / "proc", {"meminfo": memory, "self/cgroup": "0::/build\n"})


@sabotage("memory", "one compiler needs up to 2.3 GB, and there are 2 GB", "echo 4600000000 > ")
def cgroup_of_2_gb(world: World) -> None:
    _recorded(world, 2 * 10**9)


@sabotage("memory", "64 compilers at once", "export MAX_JOBS=13")
def more_jobs_than_memory(world: World) -> None:
    _recorded(world, 30 * 10**9)
    world.env["MAX_JOBS"] = "64"


def _raise_files(world: World) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))


@sabotage("open-files", "may open 100 files", "ulimit -n 1024", _raise_files)
def few_open_files(world: World) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))


@sabotage("temporary-directory", "can't be written to", "unset TMPDIR")
def temporary_directory_that_is_gone(world: World) -> None:
    world.env["TMPDIR"] = str(world.folder / "gone")


# ------------------------------------------------------------------------- the network


def _trust_the_system(world: World) -> None:
    world.monkeypatch.delenv("SSL_CERT_FILE")


@sabotage("network", "no file `/opt/gone.pem`", "correct SSL_CERT_FILE", _trust_the_system)
def authorities_that_are_gone(world: World) -> None:
    world.monkeypatch.setenv("SSL_CERT_FILE", "/opt/gone.pem")


def _set_clock(world: World) -> None:
    world.monkeypatch.setattr(network, "time", time)


@sabotage("network", "clock says 2001-09-09", "sudo date -s @", _set_clock)
def clock_of_a_board_without_a_battery(world: World) -> None:
    world.monkeypatch.setattr(network, "time", SimpleNamespace(time=lambda: 1e9))


# ---------------------------------------------------------------------------- the tree


@sabotage("submodules", "1 submodule of 1 have no files", "git -C ")
def submodule_missing(world: World) -> None:
    shutil.rmtree(world.tree / "third_party")
    (world.tree / ".gitmodules").unlink()
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME",)}
    mail = {f"GIT_{who}_EMAIL": "x@example.org" for who in ("AUTHOR", "COMMITTER")}
    world.env |= identity | mail | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ALLOW_PROTOCOL": "file"}
    world.type(
        "git init -q ../fmt && touch ../fmt/CMakeLists.txt && git -C ../fmt add . "
        "&& git -C ../fmt commit -qm fmt && git init -q . "
        "&& git -c protocol.file.allow=always submodule --quiet add ../fmt third_party/fmt "
        "&& git commit -qm tree && git submodule --quiet deinit -f third_party/fmt"
    )


@sabotage("cmake-cache", "was configured for the compiler", "rm -r ")
def cache_of_another_compiler(world: World) -> None:
    compiler = world.script("old-g++", "exec /usr/bin/g++")
    write(
        world.tree / "build",
        {
            "CMakeCache.txt": f"CMAKE_CXX_COMPILER:FILEPATH={compiler}\n"
            f"CMAKE_HOME_DIRECTORY:INTERNAL={world.tree}\nCMAKE_GENERATOR:INTERNAL=Ninja\n",
            "CMakeFiles/rules.ninja": "",
            "core.o": "hours of work",
        },
    )


# ------------------------------------------------------------------------- BLAS and GPUs


def _pip_mkl(world: World) -> None:
    write(world.venv, {"include/mkl.h": "", "lib/libmkl_core.a": ""})


@sabotage("blas", "MKL is requested", "python -m pip install mkl-static mkl-include", _pip_mkl)
def mkl_missing(world: World) -> None:
    world.env["BLAS"] = "MKL"


def stand_in_cuda(world: World, version: str) -> Path:
    """Make a stand-in for a CUDA toolkit: its nvcc says a version, and compiles nothing."""
    root = world.folder / f"cuda-{version}"
    said = f"Cuda compilation tools, release {version}, V{version}.48"
    world.script("nvcc", f'case "$1" in --version) echo "{said}";; esac', folder=root / "bin")
    write(root, {"nvvm/bin/cicc": "", "include/cublas_v2.h": "", "lib/libcublas.so": ""})
    world.computes = (f"cu{version.replace('.', '')}",)
    world.env |= {"USE_CUDNN": "0", "USE_MAGMA": "0"}
    world.env["PATH"] = f"{root}/bin:{world.env['PATH']}"
    return root


def stand_in_driver(world: World, code: str, version: int) -> None:
    """Make a stand-in for NVIDIA's driver library."""
    whole = f"""
    int cuInit(unsigned flags) {{ {code} }}
    int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}
    int cuDeviceGetCount(int *count) {{ *count = 1; return 0; }}
    """
    world.library(world.folder / "driver/libcuda.so.1", whole)
    world.env["LD_LIBRARY_PATH"] = str(world.folder / "driver")


def _new_driver(world: World) -> None:
    stand_in_driver(world, "return 0;", 13000)


@sabotage("cuda-driver", "supports CUDA 12.2, but the toolkit is 13.0", "", _new_driver)
def driver_older_than_the_toolkit(world: World) -> None:
    stand_in_cuda(world, "13.0")
    stand_in_driver(world, "return 0;", 12020)


@sabotage("cuda-variables", "which has no nvcc", "unset CUDA_PATH")
def stray_cuda_path(world: World) -> None:
    stand_in_cuda(world, "13.0")
    world.env["CUDA_PATH"] = "/opt/cuda"


@sabotage("cuda-host-compiler", "the newest it accepts is 13", "export CUDAHOSTCXX=")
def gcc_too_new_for_nvcc(world: World) -> None:
    stand_in_cuda(world, "12.6")
    older = world.venv / "bin/gcc"
    world.monkeypatch.setattr("torchyard.doctor.bench.list_compilers", lambda: [older])
    for name in ("gcc", "g++"):
        world.says(name, "16.2.0", f"/usr/bin/{name}")
    world.env |= {"CC": "gcc", "CXX": "g++"}


def stand_in_rocm(world: World) -> Path:
    """Make a stand-in for ROCm: its hipcc says what the real one says about versions and search."""
    root = world.folder / "rocm"
    gcc = "/usr/lib/gcc/x86_64-linux-gnu/99"
    world.script(
        "hipcc",
        f"""case "$*" in *--version*)
echo "HIP version: 6.4.1-abc"; echo "clang version 19.0.0"; echo "InstalledDir: {root}/llvm/bin";;
*) gcc={gcc}; case "$HIPCC_COMPILE_FLAGS_APPEND" in --gcc-install-dir=*)
gcc="${{HIPCC_COMPILE_FLAGS_APPEND#*=}}"; gcc="${{gcc%% *}}";; esac
echo "Selected GCC installation: $gcc"; echo "#include <...> search starts here:"
test -z "$CPLUS_INCLUDE_PATH" || echo " $CPLUS_INCLUDE_PATH"
echo " {world.folder}/conda/include"; echo " {root}/include"; echo "End of search list.";; esac""",
        folder=root / "bin",
    )
    for name, real in (("clang", "gcc"), ("clang++", "g++")):
        said = 'case "$1" in --version) echo "clang version 19.0.0";; --print*|--target*) ;; '
        world.script(name, f'{said}*) exec /usr/bin/{real} "$@";; esac', folder=root / "llvm/bin")
    write(root, {"include/thrust/complex.h": ""})
    world.computes = ("rocm6.4",)
    world.env |= {"ROCM_PATH": str(root), "HIPCC_COMPILE_FLAGS_APPEND": _gcc_option()}
    return root


def _gcc_option() -> str:
    said = subprocess.check_output(["gcc", "-print-libgcc-file-name"], text=True)
    return f"--gcc-install-dir={Path(said.strip()).parent}"


@sabotage("rocm-include-order", "takes thrust/complex.h from", "export CPLUS_INCLUDE_PATH=")
def thrust_of_two_owners(world: World) -> None:
    stand_in_rocm(world)
    write(world.folder / "conda/include", {"thrust/complex.h": ""})


@sabotage("rocm-gcc", "uses the C++ library of", "export HIPCC_COMPILE_FLAGS_APPEND=")
def hipcc_with_another_gcc(world: World) -> None:
    stand_in_rocm(world)
    del world.env["HIPCC_COMPILE_FLAGS_APPEND"]


@sabotage("rocm-openmp", "OpenMP_ROOT is not set", "export OpenMP_ROOT=")
def clang_of_rocm_without_its_openmp(world: World) -> None:
    clang = stand_in_rocm(world) / "llvm/bin/clang"
    world.env |= {"CC": str(clang), "CXX": f"{clang}++"}


@sabotage("rocm-toolkit", "HIP_PLATFORM is nvidia", "export HIP_PLATFORM=amd")
def hip_for_nvidia(world: World) -> None:
    stand_in_rocm(world)
    world.env["HIP_PLATFORM"] = "nvidia"


def _translate(world: World) -> None:
    write(world.tree, {"c10/hip/HIPStream.h": ""})


@sabotage("rocm-translation", "is not translated to HIP", "", _translate)
def tree_that_is_not_hipified(world: World) -> None:
    stand_in_rocm(world)
    write(world.tree, {"tools/amd_build/build_amd.py": ""})


HEAVY = frozenset(
    (
        "another-torch-on-ld-library-path",
        "cmake-4-with-torch-2-6",
        "cmake-of-another-python",
        "compiler-of-conda-that-is-not-taken",
        "compiler-that-is-gone",
        "gcc-too-old-for-the-tree",
        "python-too-old-for-the-tree",
    )
)
"""Those that are like others, and that CI leaves to the night."""
