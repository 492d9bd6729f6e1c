"""Real interpreters, compilers and packages, and a job's folder made of them."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import SMALL, Command
from tests.support.hostile_steps import spec_of
from tests.support.schemas import validate
from tests.support.services import LOOPBACK, S3Server, reserved_port

from torchyard.compute.cuda import toolkit as cuda
from torchyard.compute.registry import compute_platforms, platform_for
from torchyard.compute.rocm import toolkit as rocm
from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, ElsewhereError, HostError
from torchyard.host.snapshot import EPOCH
from torchyard.model.step import Step
from torchyard.model.toolchain import Toolchain
from torchyard.run.sandbox import INSIDE, Enclosure, enclose
from torchyard.run.workdir import WorkDir
from torchyard.toolchain import blas, cache
from torchyard.toolchain.compilers import Compiler, check_host_compiler, find_compiler
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.identity import identify
from torchyard.toolchain.interpreters import best_of, find_interpreters, interpreter_for
from torchyard.toolchain.provision import ToolchainLayout, Tools, build_variables, equip
from torchyard.toolchain.pypi import install, make_environment, parse_lock, read_lock
from torchyard.toolchain.variables import compose

pytestmark = pytest.mark.integration

TABLES = load_tables()
SYSTEM = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
BACKEND = ["ninja==1.13.0", "scikit-build-core==0.11.6", "packaging==25.0", "pathspec==0.12.1"]
ANSWER = "extern int answer(void); int main(void) { return answer(); }\n"

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
needs_nvcc = pytest.mark.skipif(not cuda.system_roots(), reason="there is no CUDA toolkit")
needs_hipcc = pytest.mark.skipif(not shutil.which("hipcc"), reason="there is no hipcc")


@pytest.fixture(scope="module")
def gcc() -> Compiler:
    return find_compiler("gcc")


def run(argv: Sequence[str | Path], env: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(argv, env=env, cwd=cwd, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


# ---------------------------------------------------------------------- interpreters


def test_the_running_interpreter_is_found_and_knows_itself() -> None:
    base = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
    (own,) = [one for one in find_interpreters() if one.path == base]
    assert own.tag == HERE
    assert own.version == platform.python_version()
    assert own.headers == Path(own.include, "Python.h").is_file()


def test_no_interpreter_is_found_twice() -> None:
    paths = [one.path for one in find_interpreters()]
    assert len(set(paths)) == len(paths)


def test_the_best_interpreter_is_the_newest_that_can_be_compiled_against() -> None:
    best = interpreter_for(HERE)
    bare = msgspec.structs.replace(best, include="/nowhere", path="/bare", version="3.999.999")
    same = msgspec.structs.replace(bare, version=best.version.rpartition(".")[0] + ".999")
    assert best_of(HERE, (same, best)) == best
    with pytest.raises(HostError, match="/bare has no headers in /nowhere"):
        best_of(HERE, (same,))
    newer = msgspec.structs.replace(best, version=same.version, origin="conda")
    assert best_of(HERE, (best, newer)) == newer


def test_an_interpreter_that_contradicts_its_headers_is_refused() -> None:
    best = interpreter_for(HERE)
    liar = msgspec.structs.replace(best, free_threaded=not best.free_threaded)
    with pytest.raises(HostError, match="on being free-threaded"):
        best_of(liar.tag, (liar,))
    other = msgspec.structs.replace(best, ext_suffix=best.ext_suffix.replace("x86_64", "riscv"))
    if other != best:
        with pytest.raises(HostError, match="another machine"):
            best_of(HERE, (other,))


def test_a_missing_interpreter_names_those_found_and_what_to_install() -> None:
    with pytest.raises(HostError, match=platform.python_version()) as caught:
        interpreter_for("cp399")
    assert "pyenv install 3.99" in str(caught.value.diagnostics[0].hint)


# ------------------------------------------------------------------------- compilers


@needs_gcc
def test_gcc_is_identified_by_the_programs_behind_it(tmp_path: Path, gcc: Compiler) -> None:
    assert gcc.kind == "gcc"
    assert gcc.cxx.endswith("g++")
    link = tmp_path / "gcc"
    link.symlink_to(gcc.cc)
    (tmp_path / "g++").symlink_to(gcc.cxx)
    assert find_compiler(str(link)).identity == gcc.identity
    wrapper = tmp_path / "other-gcc"
    wrapper.write_text(f'#!/bin/sh\nexec {gcc.cc} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    (tmp_path / "other-g++").symlink_to(gcc.cxx)
    assert find_compiler(str(wrapper)).identity != gcc.identity


@needs_gcc
def test_digests_are_remembered_in_a_file_until_a_program_changes(tmp_path: Path) -> None:
    memory, program = tmp_path / "digests.json", tmp_path / "program"
    program.write_bytes(b"one")
    first = Digests(memory).of({"p": program})
    assert str(program) in memory.read_text(encoding="utf-8")
    program.write_bytes(b"three")
    assert Digests(memory).of({"p": program}) != first
    memory.write_bytes(b"damaged")
    program.write_bytes(b"one")
    assert Digests(memory).of({"p": program}) == first


def test_digests_are_found_where_nothing_can_be_written(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("one", encoding="utf-8")
    digest = Digests(program / "digests.json").of({"it": program})
    assert digest == Digests().of({"it": program})


@pytest.mark.parametrize("mark", [".git", "torchyard.toml"])
def test_a_compiler_of_a_repository_is_not_run(tmp_path: Path, mark: str) -> None:
    """Plans and doctor run it outside of the sandbox."""
    compiler = tmp_path / "tools/gcc-13"
    compiler.parent.mkdir()
    compiler.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    compiler.chmod(0o755)
    (tmp_path / mark).touch()
    link = Path(os.path.realpath(tmp_path)).with_name(f"{tmp_path.name}-gcc")
    link.symlink_to(compiler)
    for path in (compiler, link):
        with pytest.raises(HostError, match="is in a project"):
            find_compiler(str(path))
    assert not (tmp_path / "ran").exists()


def test_what_is_no_compiler_is_refused() -> None:
    with pytest.raises(HostError, match="no compiler `gcc-99`"):
        find_compiler("gcc-99")
    with pytest.raises(HostError, match="neither gcc nor clang"):
        find_compiler("ls")


@needs_hipcc
def test_a_clang_is_identified_with_its_llvm() -> None:
    (first, *_) = rocm.system_rocms()
    clang = find_compiler(first.clang)
    assert clang.kind == "clang"
    assert clang.identity.startswith("clang ")


# -------------------------------------------------------------------- environments


def test_an_environment_works_under_another_path(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    make_environment(interpreter_for(HERE), BACKEND, first)
    found = [path for path in first.rglob("*") if path.is_file()]
    assert found
    assert not [path for path in found if str(tmp_path).encode() in path.read_bytes()]
    first.rename(second)
    env = {"PATH": f"{second}/bin:/usr/bin:/bin"}
    assert run(["ninja", "--version"], env, second).startswith("1.13")
    where = run(["python", "-c", "import pathspec; print(pathspec.__file__)"], env, second)
    assert where.startswith(str(second))


def test_objects_that_include_headers_of_an_environment_stay_newer(tmp_path: Path) -> None:
    """Bindings have an environment of their own, made after the core's objects."""
    make_environment(interpreter_for(HERE), BACKEND, tmp_path / "env")
    assert {path.lstat().st_mtime for path in (tmp_path / "env/lib").rglob("*.*")} == {EPOCH}


def test_an_environment_is_made_once_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    make_environment(interpreter_for(HERE), BACKEND, folder)
    made = folder.stat().st_ino
    make_environment(interpreter_for(HERE), BACKEND[::-1], folder)
    assert folder.stat().st_ino == made
    with pytest.raises(ConfigError, match="pathspec"):
        make_environment(interpreter_for(HERE), BACKEND[:-1], tmp_path / "gap")
    assert [path.name for path in tmp_path.iterdir()] == ["env"]
    make_environment(interpreter_for(HERE), BACKEND[:1], folder)
    assert folder.stat().st_ino != made


def test_a_file_with_another_hash_is_not_installed(tmp_path: Path) -> None:
    evil = f"six==1.17.0 --hash=sha256:{'0' * 64}"
    with pytest.raises(HostError, match="Hash mismatch"):
        make_environment(interpreter_for(HERE), [evil, "packaging==26.3"], tmp_path / "env")
    assert not list(tmp_path.iterdir())


def test_pins_of_torchyard_are_installed_by_hash(tmp_path: Path) -> None:
    make_environment(interpreter_for(HERE), ["six==1.17.0", "packaging==26.3"], tmp_path / "env")
    lines = (tmp_path / "env/requirements.txt").read_text().splitlines()
    assert [line.partition(" --hash=sha256:")[0] for line in lines] == [
        "packaging==26.3",
        "six==1.17.0",
    ]


def test_an_index_out_of_reach_is_not_the_jobs_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reserved_port() as port:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://{LOOPBACK}:{port}/simple")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        with pytest.raises(ElsewhereError) as caught:
            install(read_lock("openblas"), tmp_path / "blas", sys.executable)
    assert caught.value.reason == "network"
    assert not (tmp_path / "blas").exists()


def test_what_is_unpacked_later_is_not_newer(tmp_path: Path) -> None:
    install(read_lock("openblas"), tmp_path / "blas", sys.executable)
    times = {path.stat().st_mtime for path in tmp_path.glob("blas/scipy_openblas32/include/*.h")}
    assert times == {EPOCH}


def test_a_file_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    lock = parse_lock("bad", f"pathspec==0.12.1 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(HostError, match="Hash mismatch"):
        install(lock, tmp_path / "some", sys.executable)
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------- jobs


NINJA = "ninja==1.13.0"


def planned(toolchain: Toolchain, *computes: str, variants: Sequence[str] = ()) -> Toolchain:
    return identify(
        toolchain,
        computes={name: platform_for(name) for name in computes},
        variants=variants,
        tables=TABLES,
    )


def equipped(
    toolchain: Toolchain,
    compute: str,
    variant: str,
    folder: Path,
    seen_as: str = "",
    *,
    requires: Sequence[str] = (NINJA,),
) -> dict[str, str]:
    equipment = equip(
        toolchain.parts_of(toolchain.platform, compute, variant),
        toolchain=toolchain,
        compute=compute,
        source=platform_for(compute),
        blas=variant,
        archs=TABLES.compute[compute].archs.get("linux-x86_64", ()),
        interpreter=interpreter_for(HERE) if requires else None,
        requires=requires,
        layout=ToolchainLayout(folder, seen_as or str(folder)),
        platforms=compute_platforms(),
        tables=TABLES,
        newest=TABLES.compute[compute].compilers,
    )
    return compose(SYSTEM, equipment)


@needs_gcc
def test_a_machine_without_what_was_planned_refuses(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(), "cpu")
    assert set(toolchain.parts) == {"compiler"}
    other = msgspec.structs.replace(toolchain, parts={"compiler": "gcc 9.9.9 sha256:00"})
    with pytest.raises(ElsewhereError, match=r"the plan was made for gcc 9\.9\.9"):
        equipped(other, "cpu", "torch2.13", tmp_path, requires=())
    assert not list(tmp_path.iterdir())


@needs_gcc
def test_what_only_the_planning_machine_has_is_to_be_found_elsewhere(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(), "cpu", "xpu")
    with pytest.raises(HostError, match="xpu"):
        equipped(toolchain, "xpu", "torch2.13", tmp_path)
    parts = {**toolchain.parts, "compute/xpu": "xpu 1"}
    with pytest.raises(ElsewhereError, match="xpu"):
        equipped(msgspec.structs.replace(toolchain, parts=parts), "xpu", "torch2.13", tmp_path)


@needs_gcc
def test_a_job_sees_its_environment_first_and_finds_all_done_again(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(), "cpu")
    env = equipped(toolchain, "cpu", "torch2.13", tmp_path)
    assert env["PATH"].split(":")[0] == f"{tmp_path}/env/bin"
    assert (env["USE_CUDA"], env["USE_ROCM"]) == ("0", "0")
    made = (tmp_path / "env").stat().st_ino
    assert equipped(toolchain, "cpu", "torch2.13", tmp_path) == env
    assert (tmp_path / "env").stat().st_ino == made
    assert {path.name for path in tmp_path.iterdir()} == {"env"}


@needs_gcc
@pytest.mark.skipif(not shutil.which("bwrap"), reason="there is no bwrap")
def test_a_job_works_under_the_name_that_its_steps_see(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(blas="pypi"), "cpu", variants=["openblas"])
    workdir = WorkDir(tmp_path, spec_of())
    workdir.prepare("bwrap")
    env = equipped(toolchain, "cpu", "openblas", workdir.folder, INSIDE)
    (workdir.job / "dot.c").write_text(
        DOT.format(header="cblas.h", prefix="scipy_"), encoding="utf-8"
    )
    script = "ninja --version && $CC -I$OpenBLAS_HOME/include dot.c -lscipy_openblas && ./a.out"
    step = Step(run=("sh", "-ec", script), cwd=INSIDE)
    run(enclose(Enclosure("bwrap"), step, workdir, None), env, tmp_path)


DOT = """
#include <{header}>
int main(void) {{
    double a[] = {{1, 2, 3}};
    return {prefix}cblas_ddot(3, a, 1, a, 1) == 14 ? 0 : 1;
}}
"""


def links(
    env: dict[str, str], folder: Path, header: str, libraries: Sequence[str], prefix: str = ""
) -> None:
    """Compile, link and run a dot product, as CMake would with these variables."""
    source = folder / "dot.c"
    source.write_text(DOT.format(header=header, prefix=prefix), encoding="utf-8")
    include = [f"-I{place}" for place in env.get("CMAKE_INCLUDE_PATH", "").split(":") if place]
    run([env["CC"], *include, source, "-o", folder / "dot", *libraries], env, folder)
    run([folder / "dot"], env, folder)


@needs_gcc
@pytest.mark.slow
def test_mkl_from_pypi_links_and_is_found_like_an_installed_one(
    tmp_path: Path, gcc: Compiler
) -> None:
    toolchain = planned(Toolchain(blas="pypi"), "cpu", variants=["mkl"])
    assert toolchain.parts["blas/mkl"].startswith("mkl 20")
    env = equipped(toolchain, "cpu", "mkl", tmp_path)
    parts = "-Wl,--start-group -lmkl_intel_lp64 -lmkl_sequential -lmkl_core -Wl,--end-group"
    links(env, tmp_path, "mkl_cblas.h", [*parts.split(), "-lm", "-ldl", "-lpthread"])
    found = blas.mkl_in(Path(env["MKLROOT"]), ("lib",), Digests())
    assert found
    assert found.version == read_lock("mkl").versions["mkl-static"]
    assert found.origin == "system"


@needs_gcc
def test_openblas_from_pypi_links(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(blas="pypi"), "cpu", variants=["openblas"])
    assert " pypi " in toolchain.parts["blas/openblas"]
    env = equipped(toolchain, "cpu", "openblas", tmp_path)
    assert (env["BLAS"], env["OpenBLAS_HOME"]) == (
        "OpenBLAS",
        f"{tmp_path}/toolchain/blas/scipy_openblas32",
    )
    links(env, tmp_path, "cblas.h", ["-lscipy_openblas"], "scipy_")


@needs_gcc
@pytest.mark.parametrize(("name", "library"), [("openblas", "openblas"), ("generic", "blas")])
def test_the_blas_of_the_system_links(
    tmp_path: Path, gcc: Compiler, name: str, library: str
) -> None:
    if not gcc.library(f"lib{library}.so"):
        pytest.skip(f"there is no lib{library}.so")
    env = equipped(planned(Toolchain(blas="system"), variants=[name]), "cpu", name, tmp_path)
    links(env, tmp_path, "cblas.h", [f"-l{library}"])


@needs_gcc
def test_a_blas_that_is_not_there_is_left_out_and_refused(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(blas="system"), "cpu", variants=["nvpl"])
    assert "blas/nvpl" not in toolchain.parts
    with pytest.raises(HostError, match="nvpl"):
        equipped(toolchain, "cpu", "nvpl", tmp_path)


# ----------------------------------------------------------------------------- CUDA

KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n"
CMAKE = """
cmake_minimum_required(VERSION 3.22)
project(try LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
add_library(try SHARED try.cu)
target_link_libraries(try CUDA::cudart)
"""


@needs_gcc
@needs_nvcc
def test_a_script_called_nvcc_leads_to_the_toolkit_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root, version), *_ = cuda.system_roots().items()
    script = tmp_path / "nvcc"
    script.write_text(f'#!/bin/sh\nexec {root}/bin/nvcc "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert next(iter(cuda.system_roots().items())) == (root, version)
    script.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert tmp_path.parent not in cuda.system_roots()


@needs_gcc
@needs_nvcc
def test_the_toolkit_of_the_system_compiles(tmp_path: Path) -> None:
    (version, *_) = cuda.system_roots().values()
    compute = "cu" + "".join(version.split(".")[:2])
    env = equipped(
        planned(Toolchain(toolkits={"cuda": "system"}), compute), compute, "torch2.13", tmp_path
    )
    assert (env["USE_CUDA"], env["USE_ROCM"]) == ("1", "0")
    (tmp_path / "try.cu").write_text(KERNEL, encoding="utf-8")
    host = ["-ccbin", env["CUDAHOSTCXX"], "-arch=sm_90"]
    run([env["CUDACXX"], *host, "-c", "try.cu", "-o", "try.o"], env, tmp_path)


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("release", ["13.0", "13.2"])
def test_cuda_from_pypi_satisfies_cmake(tmp_path: Path, release: str) -> None:
    compute = f"cu{release.replace('.', '')}"
    toolchain = planned(Toolchain(toolkits={"cuda": "pypi"}), compute)
    began = time.monotonic()
    env = equipped(toolchain, compute, "torch2.13", tmp_path / "job")
    print(f"composed CUDA {release} in {time.monotonic() - began:.1f} s")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
    (tmp_path / "try.cu").write_text(KERNEL, encoding="utf-8")
    options = ["-G", "Ninja", "-DCMAKE_CUDA_ARCHITECTURES=90", "-S", ".", "-B", "build"]
    said = run(["cmake", *options], env, tmp_path)
    assert f"NVIDIA {release}." in said
    run(["ninja", "-C", "build"], env, tmp_path)
    assert str(tmp_path / "job") in (tmp_path / "build/CMakeCache.txt").read_text(encoding="utf-8")


LIBRARIES = """
cmake_minimum_required(VERSION 3.22)
project(try LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
set(linked cudart cublas cublasLt cufft curand cusolver cusparse cupti nvrtc nvJitLink)
foreach(name IN LISTS linked ITEMS
        cuda_driver cudart_static cuFile nppc nppif nvjpeg nvml nvptxcompiler_static nvtx3 nvfatbin)
  if(NOT TARGET CUDA::${name})
    message(SEND_ERROR "CUDAToolkit has no target CUDA::${name}")
  endif()
endforeach()
list(TRANSFORM linked PREPEND CUDA::)
add_executable(try try.cu)
target_link_options(try PRIVATE -Wl,--no-as-needed)
target_link_libraries(try ${linked} CUDA::cuda_driver CUDA::nvml)
"""
USES = "cublas_v2 cufft curand cusolverDn cusparse cupti nvrtc nvJitLink nvtx3/nvToolsExt cuda nvml"


@needs_gcc
@pytest.mark.slow
def test_the_whole_cuda_of_pypi_has_all_libraries_for_cmake(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(toolkits={"cuda": "pypi-all"}), "cu130")
    plain = planned(Toolchain(toolkits={"cuda": "pypi"}), "cu130")
    assert toolchain.parts["compute/cu130"] != plain.parts["compute/cu130"]
    tools = ("cmake==3.31.10", NINJA)
    env = equipped(toolchain, "cu130", "torch2.13", tmp_path / "job", requires=tools)
    (tmp_path / "CMakeLists.txt").write_text(LIBRARIES, encoding="utf-8")
    headers = ["#include <cub/cub.cuh>", *(f"#include <{name}.h>" for name in USES.split())]
    source = "\n".join([*headers, KERNEL, "int main() { return cuInit(0) == 0; }", ""])
    (tmp_path / "try.cu").write_text(source, encoding="utf-8")
    options = ["-G", "Ninja", "-DCMAKE_CUDA_ARCHITECTURES=90", "-S", ".", "-B", "build"]
    run(["cmake", *options], env, tmp_path)
    run(["ninja", "-C", "build"], env, tmp_path)
    needed = run(["readelf", "--dynamic", "build/try"], env, tmp_path)
    for name in (
        "cublas",
        "cublasLt",
        "cufft",
        "curand",
        "cusolver",
        "cusparse",
        "nvJitLink",
        "cuda",
    ):
        assert f"[lib{name}.so." in needed
    assert "stubs" not in needed.partition("RUNPATH")[2]


@needs_gcc
def test_a_host_compiler_that_is_too_new_is_refused(gcc: Compiler) -> None:
    newest = TABLES.compute["cu130"].compilers
    check_host_compiler("CUDA 13.0", gcc, newest)
    future = msgspec.structs.replace(gcc, version="99.1.0")
    with pytest.raises(HostError, match=r"CUDA 13\.0 does not compile with gcc 99\.1\.0.* is 15"):
        check_host_compiler("CUDA 13.0", future, newest)
    clang = msgspec.structs.replace(gcc, kind="clang", version="21.0.0")
    with pytest.raises(HostError, match="clang 21"):
        check_host_compiler("CUDA 13.0", clang, newest)


@needs_nvcc
def test_architectures_that_the_toolkit_does_not_know_are_refused(tmp_path: Path) -> None:
    (toolkit, *_) = cuda.system_toolkits()
    cuda.check_cuda_archs(toolkit, tmp_path, ["9.0", "9.0+PTX", "9.0a"])
    for bad in ("3.5", "9.0b", "sm_90", "90"):
        with pytest.raises(ConfigError, match=f"can't compile for {bad}"):
            cuda.check_cuda_archs(toolkit, tmp_path, ["9.0", bad])


def test_a_cuda_that_nobody_has_names_what_there_is() -> None:
    with pytest.raises(HostError, match=r"no CUDA 12\.6.*from PyPI: 13\.0"):
        cuda.find_cuda("12.6", "pypi")


# ----------------------------------------------------------------------------- ROCm


@needs_gcc
@needs_hipcc
def test_rocms_headers_and_libraries_come_before_others(tmp_path: Path, gcc: Compiler) -> None:
    """With the variables of ROCm 7; the hipcc here does not know its --gcc-install-dir yet."""
    for owner in ("rocm", "env"):
        root = tmp_path / owner
        (root / "lib").mkdir(parents=True)
        (root / "include/thrust").mkdir(parents=True)
        code = f'const char *owner(void) {{ return "{owner}"; }}\n'
        (root / "include/thrust/complex.h").write_text(code, encoding="utf-8")
        code = f'#include "{root}/include/thrust/complex.h"\n'
        library = ["-shared", "-fPIC", "-x", "c", "-", "-o", str(root / "lib/libowner.so")]
        subprocess.run(["gcc", *library], input=code, text=True, check=True)
    kit = rocm.RocmToolkit(
        version="7.2.1", digest="", root=str(tmp_path / "rocm"), clang="/usr/bin/clang-15"
    )
    tools, layout = Tools(compiler=gcc, kit=kit), ToolchainLayout(tmp_path, str(tmp_path))
    env = build_variables(tools, ["gfx90a"], layout, compute_platforms(), python=True)
    assert env["PATH"].startswith(f"{tmp_path}/env/bin:")
    flags = env["HIPCC_COMPILE_FLAGS_APPEND"].split()
    assert flags[0].startswith("--gcc-install-dir=")
    compiling = {"HIP_PLATFORM": "amd", "CPLUS_INCLUDE_PATH": env["CPLUS_INCLUDE_PATH"]}
    compiling |= {"HIPCC_COMPILE_FLAGS_APPEND": " ".join(flags[1:])}
    (tmp_path / "try.hip").write_text("#include <thrust/complex.h>\n", encoding="utf-8")
    last = ["-idirafter", f"{tmp_path}/rocm/include"]  # as the hipcc of ROCm 6 puts them
    words = ["hipcc", "--offload-arch=gfx90a", "--cuda-host-only", "-E", "try.hip", *last]
    for theirs in ([], ["-isystem", f"{tmp_path}/env/include"]):
        assert 'return "rocm"' in run([*words, *theirs], SYSTEM | compiling, tmp_path)
        plain = SYSTEM | {"HIP_PLATFORM": "amd", "CPATH": f"{tmp_path}/env/include"}
        assert 'return "env"' in run([*words, *theirs], plain, tmp_path), "or this proves nothing"

    searched = SYSTEM | {name: env[name] for name in ("LIBRARY_PATH", "LD_LIBRARY_PATH")}
    code = "int puts(const char *); const char *owner(void); int main(void) { puts(owner()); }\n"
    (tmp_path / "main.c").write_text(code, encoding="utf-8")
    linked = run(["gcc", "main.c", "-lowner", "-o", "main", "-Wl,--trace"], searched, tmp_path)
    assert f"{tmp_path}/rocm/lib/" in linked
    assert f"{tmp_path}/env/lib/" not in linked
    assert run(["./main"], searched, tmp_path) == "rocm\n"


@needs_gcc
@needs_hipcc
def test_hipcc_compiles_for_the_architectures_that_it_knows(tmp_path: Path) -> None:
    (found, *_) = rocm.system_rocms()
    name = f"rocm{found.release}"
    toolchain = planned(Toolchain(), name)
    assert toolchain.parts[f"compute/{name}"] == found.identity
    env = equip(
        toolchain.parts_of(toolchain.platform, name, ""),
        toolchain=toolchain,
        compute=name,
        source=platform_for(name),
        blas="",
        archs=("gfx90a",),
        interpreter=None,
        requires=(),
        layout=ToolchainLayout(tmp_path, str(tmp_path)),
        platforms=compute_platforms(),
        tables=TABLES,
        newest={},
    )
    assert env["PYTORCH_ROCM_ARCH"] == "gfx90a"
    (tmp_path / "try.hip").write_text(f"#include <hip/hip_runtime.h>\n{KERNEL}", encoding="utf-8")
    call = ["hipcc", "--offload-arch=gfx90a", "-c", "try.hip", "-o", "try.o"]
    run(call, compose(SYSTEM, env), tmp_path)
    with pytest.raises(ConfigError, match="can't compile for gfx9999"):
        rocm.check_rocm_archs(found, ["gfx90a:xnack-", "gfx9999"])


def test_a_rocm_that_is_not_there_is_refused() -> None:
    with pytest.raises(HostError, match=r"no ROCm 1\.0"):
        rocm.find_rocm("1.0")


# ---------------------------------------------------------------------- compile cache


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    if not shutil.which("redis-server"):
        pytest.skip("there is no redis-server")
    with reserved_port() as port:
        call = ["redis-server", "--bind", LOOPBACK, "--port", str(port), "--save", ""]
        with subprocess.Popen([*call, "--dir", tmp_path], stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout
                assert any(b"Ready to accept" in line for line in server.stdout)
                yield f"redis://{LOOPBACK}:{port}"
            finally:
                server.terminate()


def compile_through(place: str, folder: Path, extra: dict[str, str]) -> cache.CacheStats:
    """Compile one file in a new job's folder, and ask how that went."""
    toolchain = planned(Toolchain(cache=place), "cpu")
    env = equipped(toolchain, "cpu", "torch2.13", folder) | extra
    (folder / "answer.c").write_text(f"{ANSWER}/* {place} */", encoding="utf-8")
    try:
        launcher = env["CMAKE_C_COMPILER_LAUNCHER"]
        run([launcher, env["CC"], "-c", folder / "answer.c", "-o", "answer.o"], env, folder)
        return cache.stats(env, folder)
    finally:
        cache.stop(env, folder)


def assert_shared(place: str, tmp_path: Path, extra: dict[str, str]) -> None:
    first = compile_through(place, tmp_path / "first", extra)
    assert (first.hits, first.misses, first.requests) == (0, 1, 1)
    second = compile_through(place, tmp_path / "second", extra)
    assert (second.hits, second.misses, second.requests) == (1, 0, 1)


@needs_gcc
def test_jobs_share_a_cache_in_a_directory(tmp_path: Path) -> None:
    assert_shared(str(tmp_path / "cache"), tmp_path, {})


@needs_gcc
def test_jobs_share_a_cache_in_redis(tmp_path: Path, redis: str) -> None:
    assert_shared(redis, tmp_path, {})


@needs_gcc
@pytest.mark.slow
def test_jobs_share_a_cache_in_a_bucket(tmp_path: Path, s3_server: S3Server) -> None:
    place = s3_server.place()
    url = f"{place.url}?endpoint={place.endpoint}"
    assert_shared(url, tmp_path, place.environment)


@needs_gcc
def test_backends_without_launchers_share_a_cache_whatever_their_python(
    tmp_path: Path, gcc: Compiler
) -> None:
    counts = []
    for python in ("python3.11", "python3.12"):
        folder = tmp_path / python
        headers = folder / "env/lib" / python / "site-packages"
        headers.mkdir(parents=True)
        (headers / "where.h").write_text("const char *where = __FILE__;\n", encoding="utf-8")
        (folder / "answer.c").write_text(f'#include "where.h"\n{ANSWER}', encoding="utf-8")
        cache.prepare_cache(folder)
        place = cache.cache_variables(str(tmp_path / "cache"), folder, str(folder))
        compilers = {"CC": gcc.cc, "CXX": gcc.cxx}
        env = cache.stand_in(SYSTEM | compilers | place, folder, str(folder))
        try:
            run([env["CC"], "-c", f"-I{headers}", "answer.c", "-o", "answer.o"], env, folder)
            counts.append(cache.stats(env, folder))
        finally:
            cache.stop(env, folder)
        assert "CMAKE_CXX_COMPILER_LAUNCHER" not in env, "or it would be compiled twice"
    assert [(one.hits, one.misses) for one in counts] == [(0, 1), (1, 0)]


def test_nvcc_is_cached_and_its_host_compiler_is_not(tmp_path: Path) -> None:
    """Programs that print their names are in place of sccache and of the compilers."""
    root = tmp_path / "job/toolchain/cuda"
    programs = {"nvcc": '"$CXX" host', "cudafe++": "true", "g++": "true", "gcc": "true"}
    for name, line in programs.items():
        program(root / "bin" / name, f'echo "{name} $@"\n{line}')
    program(tmp_path / "job" / cache.PROGRAM, 'echo through the cache\n"$@"')
    (root / "include").mkdir()
    compilers = {"CC": f"{root}/bin/gcc", "CXX": f"{root}/bin/g++", "CUDA_HOME": str(root)}
    env = cache.stand_in(SYSTEM | compilers, tmp_path / "job", str(tmp_path / "job"))

    home = Path(env["CUDA_HOME"])
    assert env["CUDA_PATH"] == env["CUDA_HOME"] != str(root)
    assert (home / "include").resolve() == root / "include"
    assert (home / "bin/cudafe++").resolve() == root / "bin/cudafe++"
    assert run([env["CXX"], "-c"], env, tmp_path) == "through the cache\ng++ -c\n"
    said = run([home / "bin/nvcc", "x.cu"], env, tmp_path)
    assert said == "through the cache\nnvcc x.cu\ng++ host\n"


def program(file: Path, lines: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    file.chmod(0o755)


@needs_gcc
def test_what_a_killed_run_left_is_ended_before_the_next_one(tmp_path: Path) -> None:
    toolchain = planned(Toolchain(cache=str(tmp_path / "cache")), "cpu")
    (tmp_path / "answer.c").write_text(ANSWER, encoding="utf-8")
    env, counts = SYSTEM, []
    try:
        for _ in range(2):
            env = equipped(toolchain, "cpu", "torch2.13", tmp_path / "job")
            launcher = env["CMAKE_C_COMPILER_LAUNCHER"]
            run([launcher, env["CC"], "-c", "answer.c", "-o", "answer.o"], env, tmp_path)
            counts.append(cache.stats(env, tmp_path / "job"))
    finally:
        cache.stop(env, tmp_path / "job")
    assert [(one.requests, one.hits) for one in counts] == [(1, 0), (1, 1)]


def test_a_cache_is_tried_before_it_is_used(tmp_path: Path, redis: str) -> None:
    (tmp_path / "file").touch()
    assert cache.is_usable(redis, tmp_path)
    assert cache.is_usable(str(tmp_path / "new/cache"), tmp_path)
    assert not cache.is_usable(str(tmp_path / "file/cache"), tmp_path)


@pytest.mark.slow
def test_a_cache_that_does_not_answer_is_of_no_use(tmp_path: Path) -> None:
    """It takes half a minute until sccache gives up."""
    with reserved_port() as port:
        assert not cache.is_usable(f"redis://{LOOPBACK}:{port}", tmp_path)


@needs_gcc
def test_stopping_a_server_that_never_ran_is_no_error(tmp_path: Path) -> None:
    cache.prepare_cache(tmp_path)
    cache.stop(SYSTEM | cache.cache_variables("/nowhere", tmp_path, str(tmp_path)), tmp_path)


# ---------------------------------------------------------------------- the command


@needs_gcc
@pytest.mark.parametrize("width", [80, 60])
def test_the_command_shows_what_there_is_and_what_is_missing(
    torchyard: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gcc: Compiler, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    file = tmp_path / "torchyard.toml"
    file.write_text(
        SMALL.replace('["cpu", "cu130"]', '["cpu", "cu130", "rocm7.2"]'), encoding="utf-8"
    )
    out = torchyard("toolchain", "-f", file).out
    assert max(map(len, out.splitlines())) <= width
    assert interpreter_for(HERE).version in out
    assert gcc.version in out
    assert "compute/cu130" in out
    assert "compute/rocm7.2" in out


@needs_gcc
def test_the_command_prints_json_by_its_schema(
    torchyard: Command, tmp_path: Path, gcc: Compiler
) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(SMALL, encoding="utf-8")
    document = json.loads(torchyard("toolchain", "-f", file, "--json").out)
    validate(document, "toolchain")
    assert document["parts"]["compiler"] == gcc.identity
    assert document["parts"]["blas/mkl"].startswith("mkl ")


@needs_gcc
def test_a_shell_can_read_the_variables(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    args = ["--compute", "cu132", "--blas", "mkl", "--work", "/a b"]
    script = torchyard("toolchain", "env", *args).out
    shown = run(
        ["sh", "-c", f'{script}\necho "$MKLROOT|$USE_CUDA|$TORCH_CUDA_ARCH_LIST"'], {}, tmp_path
    )
    assert (
        shown
        == f"/a b/toolchain/blas|1|{';'.join(TABLES.compute['cu132'].archs['linux-x86_64'])}\n"
    )
    assert not list(tmp_path.iterdir())
    assert torchyard("toolchain", "env", "--compute", "cu131").code == 2
    assert torchyard("toolchain", "--json", "env").code == 2


@needs_gcc
def test_a_cache_beside_the_file_is_among_the_variables(torchyard: Command, tmp_path: Path) -> None:
    file = tmp_path / "torchyard.toml"
    file.write_text(f'{SMALL}\n[toolchain]\ncache = "cache"\n', encoding="utf-8")
    said = torchyard("toolchain", "env", "-f", file)
    assert said.code == 0, said.err
    assert f"export SCCACHE_DIR={tmp_path}/cache\n" in said.out
