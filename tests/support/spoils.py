"""A project that this machine can build, and ways to spoil the machine or the project.

The project has the shape of torch, for the CPU, CUDA and ROCm, as wheels and conda packages; no
test builds it. Its compilers are scripts: they say what the real ones say of themselves, and stand
in for them when `doctor` tries a small program. CUDA's parts are stand-ins as well.
"""

import shutil
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from tests.support.recipe import call
from tests.support.sabotage import write

from torchyard.compute.cuda import machine_checks
from torchyard.host import fixed_path, system_view
from torchyard.toolchain import blas, interpreters

PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
_BWRAP = which("bwrap")
_TREE = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.27)\nproject(Torch)\n",
    "version.txt": "2.14.0a0\n",
    "torch/csrc/Module.cpp": "",
    ".gitmodules": '[submodule "fmt"]\n\tpath = third_party/fmt\n\turl = ../fmt\n',
    "third_party/fmt/CMakeLists.txt": "",
}
_FILE = f"""\
[project]
name = "torch"
version = "2.14.0"
[source]
path = "tree"
[toolchain]
compiler = "bin/gcc"
[build]
tree = "full"
linalg = "torch_cuda_linalg"
[matrix]
platform = ["linux-x86_64"]
compute = ["cpu", "cu130", "rocm7.2"]
blas = ["mkl"]
python = ["{PYTHON}"]
package = ["wheel", "conda", "libtorch"]
[[matrix.exclude]]
compute = "rocm7.2"
package = ["conda", "libtorch"]
reason = "no test's machine has a ROCm"
[smoke]
channels = ["channel"]
"""
_DEFINE = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 24\n#define CUDNN_PATCHLEVEL 0\n"
_CUDA = {
    "nvvm/bin/cicc": "",
    "include/cublas_v2.h": "",
    "include/cudnn_version.h": _DEFINE,
    "include/nccl.h": "",
    "include/magma.h": "",
    "lib/libcublas.so": "",
    "lib/libcudnn.so": "",
    "lib/libnccl_static.a": "",
    "lib/libmagma.a": "",
}
_NVCC = """case "$1" in
--version) echo "Cuda compilation tools, release 13.0, V13.0.88";;
--list-gpu-arch) for n in 75 80 86 90 100 120; do echo compute_$n; done;;
esac"""
_BROKEN_NVCC = f'{_NVCC}\ntest "$1" != -ccbin || exit 1'
_COMPILER = """echo "$*" >> {log}
case "$*" in
*.cpp*) for word; do out=$last; last=$word; test "$out" = -o && cp /bin/true "$word"; done; true;;
*) exec {real} "$@";;
esac"""


class Yard:
    """A project, and a machine that is ready to build it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "project"
        self.monkeypatch = monkeypatch
        self.bin, self.cuda = folder / "bin", folder / "cuda"
        self.tree, self.file = self.folder / "tree", self.folder / "torchyard.toml"
        self.calls = folder / "calls"
        write(self.tree, _TREE)
        write(self.cuda, _CUDA)
        write(self.folder / "channel", {"noarch/repodata.json": "{}"})
        for name in ("gcc", "g++"):
            self.script(self.bin / name, _COMPILER.format(log=self.calls, real=f"/usr/bin/{name}"))
        self.says("12.2.0")  # this machine's own may be too new for CUDA
        monkeypatch.setattr(machine_checks, "glibc_version", lambda: "2.36")
        self.script(self.cuda / "bin/nvcc", _NVCC)
        for name in ("bwrap", "git"):
            (self.bin / name).symlink_to(which(name) or name)
        self.file.write_text(_FILE.replace("bin/gcc", f"{self.bin}/gcc"), encoding="utf-8")
        monkeypatch.setenv("PATH", f"{self.bin}:{self.cuda}/bin:/bin")
        own = ("path", Path(sys.executable))
        monkeypatch.setattr(interpreters, "_candidates", lambda: iter([own]))

    def script(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def says(self, version: str) -> None:
        """Let the compilers say another version."""
        for name in ("gcc", "g++"):
            text = (self.bin / name).read_text(encoding="utf-8").removeprefix("#!/bin/sh\n")
            said = f'test "$1" = -dumpfullversion && echo {version} && exit'
            self.script(self.bin / name, f"{said}\n{text}")

    def change(self, old: str, new: str) -> None:
        """Change the file; without an old text, add to it."""
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        changed = text.replace(old, new) if old else f"{text}{new}\n"
        self.file.write_text(changed, encoding="utf-8")

    def compilations(self) -> list[str]:
        """Return the calls of compilers that are neither questions nor trials of `doctor`."""
        calls = self.calls.read_text(encoding="utf-8") if self.calls.exists() else ""
        asks = ("--version", "-dumpfullversion", "-print-", "-E ", "torchyard-doctor-", "program.c")
        return [call for call in calls.splitlines() if not any(word in call for word in asks)]


def forget() -> None:
    """Forget what was found out about the machine."""
    system_view._tried.cache_clear()
    fixed_path.fixed_path_program.cache_clear()
    interpreters.find_interpreters.cache_clear()


class Spoil(NamedTuple):
    """A way to spoil a yard, the cells that it concerns, and a part of why these are refused."""

    spoil: Callable[[Yard], None]
    cells: tuple[str, ...]
    says: str


SPOILS: dict[str, Spoil] = {}
HARMLESS: dict[str, Spoil] = {}
"""Changes that look bad and are not: both `doctor` and `build` go on."""

ALL = ("cpu", "cu130", "conda")
CUDA = ("cu130",)
CONDA = ("conda",)


def spoils(says: str, cells: tuple[str, ...] = ALL) -> Callable[[Callable[[Yard], None]], None]:
    """Register a way to spoil a yard; one that says nothing is harmless."""

    def decorate(spoil: Callable[[Yard], None]) -> None:
        table = SPOILS if says else HARMLESS
        table[spoil.__name__.replace("_", "-")] = Spoil(spoil, cells, says)

    return decorate


# ---------------------------------------------------------------------------- sandboxes


@spoils("", ALL)
def no_bubblewrap(yard: Yard) -> None:
    (yard.bin / "bwrap").unlink()
    yard.monkeypatch.setenv("PATH", f"{yard.bin}:{yard.cuda}/bin")


_DENIED = 'echo "bwrap: No permissions to create new namespace" >&2; exit 1'


def no_namespaces(yard: Yard) -> None:
    yard.script(yard.bin / "bwrap", _DENIED)


@spoils("", ALL)
def a_container_without_namespaces(yard: Yard) -> None:
    no_namespaces(yard)


@spoils("No permissions to create new namespace")
def a_container_that_lets_nothing_be_traced(yard: Yard) -> None:
    no_namespaces(yard)
    yard.monkeypatch.setattr(fixed_path, "_COMPILERS", ())


@spoils("has to run in a sandbox")
def a_file_that_asks_for_a_sandbox_that_does_not_work(yard: Yard) -> None:
    views_only(yard)
    yard.change("", '[sandbox]\nkind = "bwrap"')


@spoils("has to run in a sandbox")
def a_machine_that_demands_a_sandbox_that_does_not_work(yard: Yard) -> None:
    views_only(yard)
    yard.change(f"{yard.bin}/gcc", "gcc")
    yard.monkeypatch.setenv("TORCHYARD_SANDBOX", "bwrap")


def views_only(yard: Yard) -> None:
    only = f'case "$*" in *--unshare-all*) {_DENIED};; esac'
    yard.script(yard.bin / "bwrap", f'{only}\nexec {_BWRAP} "$@"')


@spoils("", ALL)
def a_sandbox_that_no_line_asks_for(yard: Yard) -> None:
    views_only(yard)


# ---------------------------------------------------------------- compilers and libraries


@spoils("there is no compiler")
def no_compiler(yard: Yard) -> None:
    (yard.bin / "gcc").unlink()


@spoils("has no C++ compiler")
def no_cpp_compiler(yard: Yard) -> None:
    (yard.bin / "g++").unlink()


@spoils("the compiler is gcc 7.5.0")
def a_compiler_that_is_too_old(yard: Yard) -> None:
    yard.says("7.5.0")


@spoils("makes no program that runs")
def a_compiler_that_fails(yard: Yard) -> None:
    for name in ("gcc", "g++"):
        fail = 'case "$*" in *.cpp*) echo "fatal error: no as" >&2; exit 1;; esac'
        yard.script(yard.bin / name, f'{fail}\n/usr/bin/{name} "$@"')


@spoils("has no OpenMP")
def a_compiler_without_openmp(yard: Yard) -> None:
    text = (yard.bin / "g++").read_text(encoding="utf-8").removeprefix("#!/bin/sh\n")
    yard.script(yard.bin / "g++", f'case "$*" in *-fopenmp*) echo error; exit 1;; esac\n{text}')


@spoils("the newest it accepts is 15", CUDA)
def a_compiler_that_is_too_new_for_cuda(yard: Yard) -> None:
    yard.says("16.2.0")


@spoils("there is no OpenBLAS BLAS on this machine", ("cpu",))
def no_openblas(yard: Yard) -> None:
    yard.change("[build]", 'blas = "system"\n[build]')
    yard.change('"mkl"', '"openblas"')
    for name in ("gcc", "g++"):
        text = (yard.bin / name).read_text(encoding="utf-8").removeprefix("#!/bin/sh\n")
        plain = 'case "$1" in -print-file-name=*) echo "${1#*=}"; exit;; esac'
        yard.script(yard.bin / name, f"{plain}\n{text}")


@spoils("torch does not find the openblas of PyPI", ("cpu",))
def an_openblas_that_torch_does_not_find(yard: Yard) -> None:
    yard.change('"mkl"', '"openblas"')


@spoils("there is no MKL BLAS on this machine")
def no_mkl(yard: Yard) -> None:
    yard.monkeypatch.setattr(blas, "_MKL_PLACES", ())
    yard.change("[build]", 'blas = "system"\n[build]')


@spoils("and the tree takes >=3.27")
def a_cmake_that_the_release_refuses(yard: Yard) -> None:
    yard.change("[build]", '[build]\nrequires = ["cmake==3.17.0"]')


@spoils("`cmakee`, which a step of package runs, is not on the PATH of jobs")
def a_step_with_a_program_that_is_not_there(yard: Yard) -> None:
    yard.change("", '[[steps.package]]\nrun = ["cmakee", "--version"]')


@spoils("")
def steps_with_programs_of_their_own(yard: Yard) -> None:
    lines = ('["ninja"]', '["{core}/tool"]', '["./tool"]', '["bash"]', '"anything"')
    steps = "".join(f"[[steps.package]]\nrun = {line}\n" for line in lines)
    elsewhere = '[[steps.package]]\nrun = ["tool"]\nenv = { PATH = "/opt/tool" }'
    yard.change("", f"{steps}{elsewhere}")


# ------------------------------------------------------------------------------- Python


@spoils("there is no Python 3.")
def no_python(yard: Yard) -> None:
    yard.monkeypatch.setattr(interpreters, "_candidates", lambda: iter(()))


@spoils("has no headers")
def a_python_without_headers(yard: Yard) -> None:
    real = sys.executable
    code = "import sys; print(sys.stdin.read().replace('/include', '/nothing'))"
    yard.script(yard.folder / "other/python3", f'{real} "$@" | {real} -c "{code}"')
    found = ("path", yard.folder / "other/python3")
    yard.monkeypatch.setattr(interpreters, "_candidates", lambda: iter([found]))


def _hide(yard: Yard, name: str) -> None:
    """Let Python find no module of a name."""

    class Without(PathFinder):
        @classmethod
        def find_spec(cls, fullname: str, *given: object) -> object:  # type: ignore[override]
            return None if fullname == name else PathFinder.find_spec(fullname, *given)  # type: ignore[arg-type]

    assert find_spec(name), "the extra `conda` is a part of the tests' environment"
    finders = [Without if one is PathFinder else one for one in sys.meta_path]
    yard.monkeypatch.setattr(sys, "meta_path", finders)
    yard.monkeypatch.delitem(sys.modules, name, raising=False)


@spoils("py-rattler-build is not installed", CONDA)
def nothing_writes_conda_packages(yard: Yard) -> None:
    _hide(yard, "rattler_build")


@spoils("py-rattler is not installed", CONDA)
def nothing_installs_conda_packages(yard: Yard) -> None:
    _hide(yard, "rattler")


@spoils("there is no channel `channel`", CONDA)
def no_smoke_channel(yard: Yard) -> None:
    (yard.folder / "channel").rename(yard.folder / "elsewhere")


@spoils("there is no channel `channel`", CONDA)
def a_smoke_channel_without_an_index(yard: Yard) -> None:
    (yard.folder / "channel/noarch/repodata.json").unlink()


# ------------------------------------------------------------------------ CUDA and ROCm


@spoils("there is no CUDA 12.6", ("cu126",))
def no_cuda_of_this_release(yard: Yard) -> None:
    yard.change('"cu130"', '"cu126"')


@spoils("can't compile for 5.0", CUDA)
def an_architecture_that_cuda_does_not_know(yard: Yard) -> None:
    yard.change("", '[[override]]\nstage = "core"\ncompute = "cu130"\narchs = ["5.0"]')


@spoils("can't compile", CUDA)
def nvcc_that_fails(yard: Yard) -> None:
    yard.script(yard.cuda / "bin/nvcc", _BROKEN_NVCC)


@spoils("does not work with glibc 2.99", CUDA)
def a_c_library_that_is_too_new_for_cuda(yard: Yard) -> None:
    yard.monkeypatch.setattr(machine_checks, "glibc_version", lambda: "2.99")
    yard.script(yard.cuda / "bin/nvcc", _BROKEN_NVCC)


@spoils("there is no cuBLAS", CUDA)
def no_cublas(yard: Yard) -> None:
    (yard.cuda / "lib/libcublas.so").unlink()


@spoils("there is no cuDNN", CUDA)
def no_cudnn(yard: Yard) -> None:
    (yard.cuda / "include/cudnn_version.h").unlink()


@spoils("", CUDA)
def no_cudnn_that_is_turned_off(yard: Yard) -> None:
    (yard.cuda / "include/cudnn_version.h").unlink()
    yard.change("", '[[override]]\nstage = "core"\nenv = { USE_CUDNN = "0" }')


@spoils("", CUDA)
def cudnn_elsewhere_that_a_variable_names(yard: Yard) -> None:
    (yard.cuda / "include/cudnn_version.h").unlink()
    write(yard.folder / "cudnn", {"include/cudnn_version.h": _DEFINE, "lib/libcudnn_static.a": ""})
    root = yard.folder / "cudnn"
    yard.change("", f'[[override]]\nstage = "core"\nenv = {{ CUDNN_ROOT = "{root}" }}')


@spoils("cuDNN has headers of 9.24.0 and a library of 9.1.0", CUDA)
def cudnn_of_two_versions(yard: Yard) -> None:
    (yard.cuda / "lib/libcudnn.so").rename(yard.cuda / "lib/libcudnn.so.9.1.0")
    (yard.cuda / "lib/libcudnn.so").symlink_to("libcudnn.so.9.1.0")


@spoils("there is no NCCL", CUDA)
def no_nccl_of_the_system(yard: Yard) -> None:
    (yard.cuda / "lib/libnccl_static.a").unlink()
    yard.change("", '[[override]]\nstage = "core"\nenv = { USE_SYSTEM_NCCL = "1" }')


@spoils("", CUDA)
def no_nccl_but_the_one_of_the_tree(yard: Yard) -> None:
    (yard.cuda / "lib/libnccl_static.a").unlink()


@spoils("there is no MAGMA", CUDA)
def no_magma(yard: Yard) -> None:
    (yard.cuda / "lib/libmagma.a").unlink()


@spoils("", CUDA)
def no_magma_that_is_turned_off(yard: Yard) -> None:
    (yard.cuda / "lib/libmagma.a").unlink()
    yard.change("", '[[override]]\nstage = "core"\ncmake = { USE_MAGMA = "OFF" }')


def override(yard: Yard, table: str) -> None:
    """Add an override of the cores for CUDA."""
    yard.change("", f'[[override]]\nstage = "core"\ncompute = "cu130"\n{table}')


@spoils("cuDNN is 8.24.0, and wheels of this release require 9.24.0", CUDA)
def cudnn_of_another_major(yard: Yard) -> None:
    header = yard.cuda / "include/cudnn_version.h"
    header.write_text(_DEFINE.replace("MAJOR 9", "MAJOR 8"), encoding="utf-8")


@spoils("and cuda.h beside it of 12.4", CUDA)
def headers_of_another_cuda(yard: Yard) -> None:
    write(yard.cuda, {"include/cuda.h": "#define CUDA_VERSION 12040\n"})


@spoils("requires nvidia-cudnn-cu12, which is for CUDA 12", CUDA)
def a_wheel_for_another_cuda(yard: Yard) -> None:
    pins = '"cmake==3.31.10", "ninja==1.13.2", "nvidia-cudnn-cu12==9.24.0.43"'
    yard.change("[build]", f"[build]\nrequires = [{pins}]")


@spoils("was linked with CUDA 12", CUDA)
def magma_that_was_linked_with_another_cuda(yard: Yard) -> None:
    folder = yard.cuda / "lib"
    for name, more in (("libcublas.so.12", ()), ("libmagma.so", ("-l:libcublas.so.12",))):
        words = ("-shared", "-x", "c", "/dev/null", f"-L{folder}", "-Wl,--no-as-needed", *more)
        call("/usr/bin/gcc", *words, f"-Wl,-soname,{name}", "-o", folder / name)
    (folder / "libmagma.a").unlink()


@spoils("CUDA_HOME is /usr/local/cuda-12.4 in an [[override]]", CUDA)
def a_variable_that_names_another_cuda(yard: Yard) -> None:
    override(yard, 'env = { CUDA_HOME = "/usr/local/cuda-12.4" }')


@spoils("with a stub in place of libcuda.so.1", CUDA)
def a_stub_of_the_driver_that_would_be_loaded(yard: Yard) -> None:
    override(yard, f'env = {{ LDFLAGS = "-Wl,-rpath,{yard.cuda}/lib64/stubs" }}')


@spoils("with a stub in place of libcuda.so.1", CUDA)
def a_stub_of_the_driver_in_an_rpath(yard: Yard) -> None:
    override(yard, f'cmake = {{ CMAKE_INSTALL_RPATH = "{yard.cuda}/lib/stubs" }}')


@spoils("can't compile for 9.9", CUDA)
def an_architecture_in_a_variable_that_cuda_does_not_know(yard: Yard) -> None:
    override(yard, 'env = { TORCH_CUDA_ARCH_LIST = "9.0;9.9" }')


@spoils("there is no cuBLAS", CUDA)
def a_toolkit_of_pypi_without_its_libraries(yard: Yard) -> None:
    """Without the toolkit beside it, from which libraries would be taken."""
    yard.change("[build]", 'cuda = "pypi"\n[build]')
    (yard.cuda / "include/cublas_v2.h").unlink()


@spoils("there is no ROCm 7.2", ("rocm7.2",))
def no_rocm(_yard: Yard) -> None:
    """It is in no test's machine."""


@spoils("torchyard can't set up a toolchain for xpu", ("xpu",))
def a_compute_without_a_toolchain(yard: Yard) -> None:
    yard.change("rocm7.2", "xpu")


# ----------------------------------------------------------------------------- the tree


@spoils("1 submodule of 1 have no files")
def an_empty_submodule(yard: Yard) -> None:
    (yard.tree / "third_party/fmt/CMakeLists.txt").unlink()


@spoils("")
def a_submodule_that_the_system_has(yard: Yard) -> None:
    (yard.tree / "third_party/fmt/CMakeLists.txt").unlink()
    yard.change("", '[[override]]\nstage = "core"\nenv = { USE_SYSTEM_LIBS = "1" }')


@spoils("the tree is version 2.5.1")
def a_tree_of_another_version(yard: Yard) -> None:
    write(yard.tree, {"version.txt": "2.5.1"})


@spoils("there is no directory")
def no_tree(yard: Yard) -> None:
    yard.tree.rename(yard.folder / "moved")


@spoils("there is no archive `torch.tar.gz`")
def no_archive(yard: Yard) -> None:
    yard.change('path = "tree"', f'archive = "torch.tar.gz"\nsha256 = "{"0" * 64}"')


@spoils("can be another commit tomorrow")
def a_tag_without_its_commit(yard: Yard) -> None:
    yard.change('path = "tree"', 'git = "https://example.org/pytorch"\nrev = "v2.14.0"')


@spoils("there is no `git`")
def no_git(yard: Yard) -> None:
    yard.change('path = "tree"', f'git = "https://example.org/pytorch"\ncommit = "{"0" * 40}"')
    (yard.bin / "git").unlink()
    yard.monkeypatch.setenv("PATH", f"{yard.bin}:{yard.cuda}/bin")


@spoils("there is no file `fix.patch`")
def no_patch(yard: Yard) -> None:
    yard.change('path = "tree"', 'path = "tree"\npatches = ["fix.patch"]')


# -------------------------------------------------------------- the file and its places


@spoils("needs 900 TB of disk")
def a_disk_that_is_too_small(yard: Yard) -> None:
    yard.change("", '[requirements.core]\ndisk = "900 TB"')


@spoils("any job needs 52.4 MB of disk")
def a_disk_that_is_full(yard: Yard) -> None:
    """Of the disk, only the number of its free bytes is made up."""
    usage = SimpleNamespace(free=1 << 20)
    yard.monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)


@spoils("")
def less_memory_than_the_file_asks_for(yard: Yard) -> None:
    yard.change("", '[requirements.core]\nmemory = "900 TB"')


@spoils("can't be made")
def a_store_where_there_is_a_file(yard: Yard) -> None:
    yard.change("", '[store]\nurl = "torchyard.toml/store"')


@spoils("nothing says with what")
def no_toolchain(yard: Yard) -> None:
    yard.change(f'[toolchain]\ncompiler = "{yard.bin}/gcc"\n', "")


@spoils("there is no directory")
def no_tests_of_the_project(yard: Yard) -> None:
    yard.change("[smoke]", '[smoke]\ntests = "smoke"')


@spoils("strange")
def a_policy_that_does_not_exist(yard: Yard) -> None:
    yard.change("", '[check]\npolicy = "strange"')


@spoils("is not a root")
def no_root(yard: Yard) -> None:
    yard.change("[build]", 'root = "nowhere"\n[build]')


@spoils("could not look for channel.json", ("",))
def no_credentials_for_the_channel(yard: Yard) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        yard.monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ENDPOINT_URL", "AWS_METADATA_ENDPOINT"):
        yard.monkeypatch.setenv(name, "http://127.0.0.1:9")
    yard.change('compute = ["cpu", "cu130", "rocm7.2"]', 'compute = ["cpu"]')
    yard.change('[[matrix.exclude]]\ncompute = "rocm7.2"', '[[matrix.exclude]]\ncompute = "cu*"')
    yard.change("", '[channel.stable]\nurl = "s3://bucket/stable"')


OF_PROJECT = frozenset(
    (
        "a-policy-that-does-not-exist",
        "a-smoke-channel-without-an-index",
        "a-tag-without-its-commit",
        "a-tree-of-another-version",
        "an-empty-submodule",
        "no-archive",
        "no-smoke-channel",
        "no-tests-of-the-project",
    )
)
"""Those that no machine could build."""

QUICK = frozenset(
    (
        "a-cmake-that-the-release-refuses",
        "a-compute-without-a-toolchain",
        "a-container-that-lets-nothing-be-traced",
        "a-container-without-namespaces",
        "a-disk-that-is-too-small",
        "a-python-without-headers",
        "a-sandbox-that-no-line-asks-for",
        "a-step-with-a-program-that-is-not-there",
        "a-tree-of-another-version",
        "an-empty-submodule",
        "no-bubblewrap",
        "no-compiler",
        "no-credentials-for-the-channel",
        "no-cudnn",
        "no-cudnn-that-is-turned-off",
        "no-mkl",
        "no-rocm",
        "no-smoke-channel",
        "no-toolchain",
        "nothing-writes-conda-packages",
    )
)
"""Those that CI tries, each with its first cell; the others are for the night."""
