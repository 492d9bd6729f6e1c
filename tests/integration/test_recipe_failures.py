"""What can be known to go wrong with a recipe's build is told before anything is compiled."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import msgspec
import pytest
from tests.support.helpers import ROOT, Command, Output
from tests.support.services import LOOPBACK, reserved_port

from torchyard.compute.cuda import toolkit as cuda
from torchyard.compute.rocm import toolkit as rocm
from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.model.job_spec import short_name
from torchyard.toolchain.blas import find_blas
from torchyard.toolchain.compilers import find_compiler
from torchyard.toolchain.interpreters import find_interpreters, running_interpreter
from torchyard.workspace.run import find_job_spec

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc"),
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
]

PROJECTS = ROOT / "tests/projects"
SOURCE = "source:small-1.0"
CORE = "core:small-1.0/linux-x86_64/{}"
CPU = CORE.format("cpu-openblas")
GCC_99 = '#!/bin/sh\ncase "$*" in -dumpfullversion) echo 99.1.0;; *) exec gcc "$@";; esac\n'

RELEASES = {cuda._release(version) for version in cuda.system_roots().values()}
needs_cuda = pytest.mark.skipif("13.0" not in RELEASES, reason="there is no CUDA 13.0")
needs_rocm = pytest.mark.skipif(
    "5.2" not in {one.release for one in rocm.system_rocms()}, reason="there is no ROCm 5.2"
)


class Project(NamedTuple):
    """A copy of the small project, which a test may spoil."""

    folder: Path
    command: Command

    @property
    def file(self) -> Path:
        return self.folder / "torchyard.toml"

    def change(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def call(self, word: str, *args: object, changes: tuple[str, ...] = ()) -> Output:
        words = [word for change in changes for word in ("--set", change)]
        return self.command(word, *args, "-f", self.file, *words)

    def run(self, job: str, *changes: str) -> Output:
        taken = self.call("run", SOURCE, changes=changes)
        assert taken.code == 0, taken.err
        return self.call("run", job, changes=changes)

    def fail(self, job: str, *changes: str) -> Output:
        """Run a job that must fail, and see that it got nowhere."""
        failed = self.run(job, *changes)
        assert failed.code
        self.check_untouched(failed)
        return failed

    def check_untouched(self, failed: Output) -> None:
        assert "compile the core" not in failed.err
        assert not [path for path in self.folder.rglob("*.o") if ".torchyard" in path.parts]


@pytest.fixture
def project(tmp_path: Path, torchyard: Command) -> Project:
    folder = tmp_path / "project"
    shutil.copytree(PROJECTS / "smalltorch", folder)
    return Project(folder, torchyard)


@pytest.fixture
def gcc_99(tmp_path: Path) -> Path:
    """Make a compiler of its own, which works as gcc does and says that it is newer than all."""
    path = tmp_path / "gcc-99"
    path.write_text(GCC_99, encoding="utf-8")
    path.chmod(0o755)
    (tmp_path / "g++-99").symlink_to(str(shutil.which("g++")))
    return path


# ------------------------------------------------------------------------------ the file


def test_without_a_toolchain_there_is_nothing_to_compile_with(project: Project) -> None:
    project.change("torchyard.toml", '[toolchain]\ncompiler = "gcc"\n', "")
    failed = project.call("build", "core:*")
    assert failed.code == 4
    assert f"error: nothing says with what {CPU} is compiled" in failed.err
    assert 'hint: add [toolchain] with compiler = "gcc"' in failed.err
    assert "started" not in failed.err


def test_a_requirement_must_be_pinned(project: Project) -> None:
    project.change("torchyard.toml", "cmake==3.31.10", "cmake>=3.27")
    failed = project.call("build", "core:*")
    assert failed.code == 3
    assert "error: `cmake>=3.27` is not pinned" in failed.err
    assert "hint: name one version, such as cmake==3.31.10" in failed.err


@pytest.mark.parametrize("arch", ["9.0+ptx", "sm_90", "90", "gfx", "gfx90a:xnack"])
def test_what_is_not_spelled_like_an_architecture(project: Project, arch: str) -> None:
    override = f'\n[[override]]\nstage = "core"\narchs = ["8.0", "{arch}"]\n'
    with project.file.open("a", encoding="utf-8") as file:
        file.write(override)
    failed = project.call("build", "core:*")
    assert failed.code == 3
    assert f"error: `{arch}` is not an architecture" in failed.err
    assert "hint: write 9.0 for CUDA, 9.0+PTX" in failed.err
    assert "^" * len(arch) in failed.err


# --------------------------------------------------------------------------- the machine


@pytest.mark.slow
def test_a_cache_that_cannot_be_used_is_done_without(project: Project) -> None:
    place = f"{project.file}/cache"
    project.change("torchyard.toml", "[toolchain]", f'[toolchain]\ncache = "{place}"')
    done = project.run(CPU)
    assert done.code == 0, done.err
    assert f"compiles everything: the compile cache {place} can't be used now" in done.err
    shown = project.call("store", "show", CPU)
    assert re.search("^cache_misses +3$", shown.out, re.MULTILINE)


def test_a_compiler_that_is_not_there(project: Project) -> None:
    failed = project.fail(CPU, 'toolchain.compiler="gcc-98"')
    assert failed.code == 7
    assert "error: there is no compiler `gcc-98` on this machine" in failed.err
    assert "hint: install gcc-98, or set `compiler` of [toolchain]" in failed.err
    whole = project.call("build", "core:*", changes=('toolchain.compiler="gcc-98"',))
    assert whole.code == 7
    assert "error: there is no compiler `gcc-98` on this machine" in whole.err
    assert "started" not in whole.err


def test_a_system_without_mkl(project: Project) -> None:
    try:
        find_blas("mkl", "system", find_compiler("gcc"))
    except HostError:
        pass
    else:
        pytest.skip("this machine has MKL")
    failed = project.fail(CORE.format("cpu-mkl"), 'toolchain.blas="system"', 'matrix.blas=["mkl"]')
    assert failed.code == 7
    assert "error: there is no MKL BLAS on this machine" in failed.err
    assert 'hint: set `blas = "pypi"` in [toolchain]' in failed.err


@pytest.mark.skipif("12.6" in RELEASES, reason="this machine has CUDA 12.6")
def test_a_cuda_that_neither_the_machine_nor_pypi_has(project: Project) -> None:
    failed = project.fail(CORE.format("cu126-openblas"), 'matrix.compute=["cu126"]')
    assert failed.code == 7
    assert "error: there is no CUDA 12.6; on this machine: " in failed.err
    assert "from PyPI: 13.0, 13.1" in failed.err
    assert "hint: install CUDA 12.6 in /usr/local/cuda-12.6" in failed.err


@needs_cuda
def test_a_compiler_that_is_too_new_for_nvcc(project: Project, gcc_99: Path) -> None:
    core = CORE.format("cu130-openblas")
    failed = project.fail(core, 'matrix.compute=["cu130"]', f'toolchain.compiler="{gcc_99}"')
    assert failed.code == 7
    what = "error: CUDA 13.0 does not compile with gcc 99.1.0: the newest it accepts is 15"
    assert what in failed.err
    assert 'set `compiler = "gcc-15"` in [toolchain]' in failed.err


@pytest.mark.slow
@needs_cuda
@pytest.mark.parametrize("arch", ["5.0", "99.0", "gfx90a"])
def test_an_architecture_that_nvcc_does_not_know(project: Project, arch: str) -> None:
    override = f'override=[{{stage="core", archs=["8.0", "{arch}"]}}]'
    failed = project.fail(CORE.format("cu130-openblas"), 'matrix.compute=["cu130"]', override)
    assert failed.code == 3
    assert f"error: CUDA 13.0 can't compile for {arch}; it supports 7.5, 8.0" in failed.err
    assert "hint: leave them out of `archs`" in failed.err


@pytest.mark.slow
@needs_rocm
@pytest.mark.parametrize("arch", ["gfx1", "9.0"])
def test_an_architecture_that_hipcc_does_not_know(project: Project, arch: str) -> None:
    override = f'override=[{{stage="core", archs=["gfx90a", "{arch}"]}}]'
    failed = project.fail(CORE.format("rocm5.2-openblas"), 'matrix.compute=["rocm5.2"]', override)
    assert failed.code == 3
    assert f"error: ROCm 5.2 can't compile for {arch}; it supports gfx" in failed.err


def test_a_python_that_is_not_there_is_missed_before_the_core_is_built(project: Project) -> None:
    here = {one.tag for one in find_interpreters()}
    missing = next((tag for tag in load_tables().pythons if tag not in here), None)
    if missing is None:
        pytest.skip("this machine has every Python")
    failed = project.call("build", "bindings:*", changes=(f'matrix.python=["{missing}"]',))
    assert failed.code == 7
    assert f"error: there is no Python {missing[2]}.{missing[3:]} on this machine" in failed.err
    assert "uv python install" in failed.err
    assert "started" not in failed.err


def test_bubblewrap_that_is_not_installed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("gcc", "g++"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    failed = project.fail(CPU)
    assert failed.code
    assert "bubblewrap is not installed" in failed.err
    assert "hint: install the package `bubblewrap`" in failed.err


def test_a_machine_with_another_compiler_than_the_one_that_planned(
    project: Project, gcc_99: Path, tmp_path: Path
) -> None:
    change = f'toolchain.compiler="{gcc_99}"'
    assert project.call("run", SOURCE, changes=(change,)).code == 0
    spec, _ = find_job_spec(CPU, None, str(project.file), (change,))
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(spec))
    gcc_99.write_text(GCC_99.replace("99.1.0", "99.2.0"), encoding="utf-8")
    failed = project.call("run", "--spec", tmp_path / "spec.json")
    assert failed.code == 75
    assert "error: this machine has gcc 99.2.0 " in failed.err
    assert "but the plan was made for gcc 99.1.0 " in failed.err
    assert "hint: run the job on a machine like the one that planned" in failed.err
    project.check_untouched(failed)


# ------------------------------------------------------------------------------ packages


def test_what_a_requirement_requires_must_be_listed(project: Project) -> None:
    failed = project.fail(CPU, 'build.requires=["cmake==3.31.10", "scikit-build-core==1.1.1"]')
    assert failed.code == 3
    assert "The package `scikit-build-core` requires `pathspec" in failed.err
    assert "hint: add missing packages to `requires` of [build]" in failed.err


def test_a_version_that_does_not_exist(project: Project) -> None:
    failed = project.fail(CPU, 'build.requires=["cmake==3.31.99"]')
    assert failed.code == 7
    assert "there is no version of cmake==3.31.99" in failed.err
    assert "hint: is the version right" in failed.err


def test_a_backend_that_is_not_required(project: Project) -> None:
    failed = project.fail(CPU, 'build.backend="scikit-build-core"')
    assert failed.code == 9
    assert "| ModuleNotFoundError: No module named 'scikit_build_core'" in failed.err
    assert "error: The build's environment lacks a package" in failed.err
    assert "Add it to `requires` of [build]" in failed.err


@pytest.fixture
def closed_index() -> Iterator[str]:
    with reserved_port() as port:
        yield f"http://{LOOPBACK}:{port}/simple"


@pytest.fixture
def broken_index() -> Iterator[str]:
    class Broken(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer((LOOPBACK, 0), Broken) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{LOOPBACK}:{server.server_port}/simple"
        server.shutdown()


@pytest.mark.parametrize("kind", ["closed_index", "broken_index"])
def test_an_index_out_of_reach(
    project: Project,
    tmp_path: Path,
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", request.getfixturevalue(kind))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    assert project.call("run", SOURCE).code == 0
    failed = project.call("run", CPU, "--json")
    assert failed.code == 75
    ended = json.loads(failed.out.splitlines()[-1])
    assert (ended["event"], ended["reason"]) == ("ended", "network")
    assert "hint: look at the network, and at proxy and index" in failed.err
    project.check_untouched(failed)


# --------------------------------------------------------------------------- the project


@pytest.mark.slow
def test_a_submodule_that_is_not_checked_out(project: Project) -> None:
    shutil.rmtree(project.folder / "third_party")
    failed = project.fail(CPU)
    assert failed.code == 9
    assert "|   third_party/part is missing; run git submodule update --init" in failed.err
    assert "error: Submodules were not checked out" in failed.err


def test_submodules_that_are_not_wanted(project: Project, tmp_path: Path) -> None:
    code, part = tmp_path / "code", tmp_path / "part"
    shutil.copytree(PROJECTS / "smalltorch", code)
    shutil.move(code / "third_party/part", part)

    def git(*words: object, cwd: Path) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        call = ["git", *who, "-c", "protocol.file.allow=always", *map(str, words)]
        done = subprocess.run(call, cwd=cwd, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    for folder in (part, code):
        git("init", "--quiet", cwd=folder)
        if folder == code:
            git("submodule", "--quiet", "add", part, "third_party/part", cwd=folder)
        git("add", "--all", cwd=folder)
        git("commit", "--quiet", "--message", "all", cwd=folder)
    commit = git("rev-parse", "HEAD", cwd=code)
    words = f'git = "{code}"\ncommit = "{commit}"\nsubmodules = false'
    project.change("torchyard.toml", 'path = "."', words)
    failed = project.fail(CPU)
    assert failed.code == 9
    assert "|   third_party/part is missing; run git submodule update --init" in failed.err
    assert "take `submodules = false` out of [source]" in failed.err


@pytest.mark.slow
def test_a_library_that_was_not_found_without_a_word(project: Project) -> None:
    project.change("CMakeLists.txt", "set(BLAS $ENV{BLAS}", "set(BLAS Eigen")
    project.change("CMakeLists.txt", "USE_OPENMP ON", "USE_OPENMP OFF")
    failed = project.fail(CPU)
    assert failed.code == 9
    assert "- BLAS should be openblas, and is `Eigen`" in failed.err
    assert "- USE_OPENMP should be on for cpu, and is `OFF`" in failed.err
    assert 'turn it off by env = { USE_… = "0" }' in failed.err
    assert "look around: torchyard shell" in failed.err


def test_a_backend_that_does_not_run_cmake(project: Project) -> None:
    """Its environment has a Python, although nothing is required."""
    (project.folder / "setup.py").write_text('print("done")\n', encoding="utf-8")
    failed = project.fail(CPU, "build.requires=[]")
    assert failed.code == 9
    assert "error: CMake has not configured `build`: it has no reply" in failed.err
    assert "hint: the project's backend must run CMake in that directory" in failed.err


def leave_cache(build: Path) -> None:
    """Leave what CMake knows of a build elsewhere, with other settings."""
    build.mkdir(parents=True)
    text = "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\nUSE_CUDA:BOOL=ON\n"
    (build / "CMakeCache.txt").write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_a_source_that_was_configured_before(project: Project) -> None:
    leave_cache(project.folder / "build")
    failed = project.fail(CPU)
    assert failed.code == 9
    assert "error: the source contains `build/CMakeCache.txt`" in failed.err
    assert "hint: remove `build` from the source" in failed.err


@pytest.mark.slow
def test_what_an_earlier_try_left_is_not_used(project: Project) -> None:
    spec, _ = find_job_spec(CPU, None, str(project.file), ())
    name = short_name("core", spec.task.fingerprint)
    leave_cache(project.folder / ".torchyard/work" / name / "job/build/build")
    result = project.run(CPU)
    assert result.code == 0, result.err


@pytest.mark.slow
def test_a_core_is_not_compiled_again_for_another_python(
    project: Project, gcc_99: Path, tmp_path: Path
) -> None:
    """Neither with flags that depend on Python, nor with another compiler."""
    own = running_interpreter().tag
    here = {one.tag for one in find_interpreters() if one.headers} - {own}
    tag = next((tag for tag in load_tables().pythons if tag in here), None)
    if tag is None:
        pytest.skip("there is only one Python here")
    flags = "target_compile_definitions(small PRIVATE PYTHON=${Python_VERSION_MINOR})\n"
    with (project.folder / "CMakeLists.txt").open("a", encoding="utf-8") as file:
        file.write(flags)
    changes = (f'toolchain.compiler="{gcc_99}"', f'matrix.python=["{tag}"]')
    assert project.run(CPU, *changes).code == 0
    bindings = f"bindings:small-1.0/linux-x86_64/cpu-openblas/{tag}"
    spec, _ = find_job_spec(bindings, None, str(project.file), changes)
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(spec))
    failed = project.call("run", bindings, changes=changes)
    assert failed.code == 9
    assert "error: the core would be compiled again for this Python: command line" in failed.err
    assert "hint: nothing of the core may depend on Python" in failed.err

    gcc_99.write_text(GCC_99.replace("99.1.0", "99.2.0"), encoding="utf-8")
    elsewhere = project.call("run", "--spec", tmp_path / "spec.json")
    assert elsewhere.code == 75
    assert "but the plan was made for gcc 99.1.0 " in elsewhere.err


@pytest.mark.slow
def test_a_project_that_goes_on_without_mkl(tmp_path: Path, torchyard: Command) -> None:
    folder = tmp_path / "tinytorch"
    shutil.copytree(PROJECTS / "tinytorch", folder)
    hidden = ("MKLROOT", "CMAKE_PREFIX_PATH", "CMAKE_INCLUDE_PATH", "CMAKE_LIBRARY_PATH")
    env = ", ".join(f'{name} = "/nowhere"' for name in hidden)
    override = f'override=[{{stage="core", env={{{env}}}}}]'
    args = ("-f", folder / "torchyard.toml", "--set", override)
    assert torchyard("run", "source:tinytorch-1.2.0", *args).code == 0
    failed = torchyard("run", "core:tinytorch-1.2.0/linux-x86_64/cpu-mkl", *args)
    assert failed.code == 9
    assert "- BLAS_INFO should be mkl, and is `none`" in failed.err
    assert 'turn it off by env = { USE_… = "0" }' in failed.err
    assert not list((folder / ".torchyard/work").rglob("*.o"))


LOST = """
if(EXISTS ${PROJECT_BINARY_DIR}/lib/libtt_linalg.so)
  set(USE_MAGMA OFF CACHE BOOL "as PyTorch does if it is not found" FORCE)
endif()
"""


@needs_cuda
@pytest.mark.slow
def test_magma_that_is_lost_after_configuring(tmp_path: Path, torchyard: Command) -> None:
    """CMake finds it at first, and no more after the plugin was built without it."""
    folder = tmp_path / "tinytorch"
    shutil.copytree(PROJECTS / "tinytorch", folder)
    plugin = folder / "linalg/CMakeLists.txt"
    plugin.write_text(LOST + plugin.read_text("utf-8"), encoding="utf-8")
    args = ("-f", folder / "torchyard.toml")
    core = "core:tinytorch-1.2.0/linux-x86_64/cu130-openblas"
    assert torchyard("run", "source:tinytorch-1.2.0", *args).code == 0
    failed = torchyard("run", core, *args)
    assert failed.code == 9
    assert "- USE_MAGMA should be on for cu130, and is `OFF`" in failed.err
    assert "compile the core" not in failed.err

    off = """override=[{stage="core", compute="cu130", archs=["8.0"], env={USE_MAGMA="0"}}]"""
    cell = "tinytorch-1.2.0/linux-x86_64/cu130-openblas/any/conda-linalg"
    done = torchyard("build", f"package:{cell}", "-o", tmp_path / "out", *args, "--set", off)
    assert done.code == 0, done.err
    (package,) = (tmp_path / "out").glob("*.conda")
    assert "_nomagma_" in package.name
    assert torchyard("check", package).code == 0
    lie = tmp_path / package.name.replace("_nomagma_", "_magma_")
    lie.write_bytes(package.read_bytes())
    checked = torchyard("check", lie)
    assert checked.code
    assert "nothing in the package uses magma, and its label promises it" in checked.out
