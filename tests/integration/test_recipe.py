"""Recipe `pytorch` on a real project: what it builds works, once is enough, twice is the same."""

import os
import pwd
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest
from tests.support.conda import (
    SUBDIR,
    find_python,
    index,
    make_channel,
    solve_and_install,
)
from tests.support.recipe import (
    PREFIX,
    SAMPLE,
    Project,
    call,
    copy_sample,
    core_libraries,
    device_code,
    metadata,
    ninja_made,
    outputs,
    python_for_others,
    run,
    shared_sample,
)

from torchyard.package.conda.index import conda_index
from torchyard.package.read import read_package
from torchyard.toolchain.interpreters import interpreter_for
from torchyard.toolchain.pypi import read_lock

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(map(shutil.which, ("gcc", "bwrap"))), reason="there is no gcc or no bwrap here"
    ),
]

slow = pytest.mark.slow
needs_cuda = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no CUDA here")
needs_rocm = pytest.mark.skipif(shutil.which("hipcc") is None, reason="there is no ROCm here")
MOST = ["cp311", "cp312"]
REST = ["cp310", "cp313"]
ALL = [*MOST, *REST]
BLAS = {"mkl": "mkl", "openblas": "open"}
IN_CI = {"mkl": MOST, "openblas": MOST[:1]}
"""The Pythons of each BLAS; one core that is bound to two of them is enough."""

CELLS = [
    pytest.param(tag, blas, marks=[] if tag in IN_CI[blas] else slow)
    for tag in ALL
    for blas in BLAS
]
MATRIX = [
    pytest.param(MOST, "mkl", id="mkl-two"),
    pytest.param(MOST, "openblas", id="openblas-two", marks=slow),
    *(pytest.param(ALL, blas, id=f"{blas}-four", marks=slow) for blas in BLAS),
]
KINDS = ["wheel", "conda"]
SHARED = ["conda-libtorch", "libtorch"]
OTHER = "cp312" if sys.version_info[:2] == (3, 11) else "cp311"
"""A Python that is not the one that configures cores."""

CORE_UNITS = 13
BOUND = {"module.cpp.o", "bind_math.cpp.o", "bind_config.cpp.o", "stub.c.o"}
FEW_UNITS = '[[override]]\nstage = "core"\nenv = { TT_UNITS = "2"'

TAGS = """
from torchyard.toolchain.interpreters import find_interpreters
print(*(one.tag for one in find_interpreters() if one.headers))
"""
USE = """
import tinytorch as t
assert t.add([1, 2], [3, 4]) == [4, 6]
assert t.matmul([1, 2, 3, 4], [5, 6, 7, 8], 2, 2, 2) == [19, 22, 43, 50]
assert t.kernel_count() == 9, t.kernel_count()
print(t.__version__, *t._C._show_config().splitlines(), sep="\\n")
"""

USE_GPU = """
import tinytorch as t
assert t._C.device_count() >= 0
assert t._C.linalg_backend().startswith("magma"), t._C.linalg_backend()
print(t.version.cuda, open("/proc/self/maps").read(), sep="\\n")
"""


def build(project: Project, blas: str, pythons: list[str]) -> None:
    cells = [f"{tag}/{kind}" for tag in pythons for kind in KINDS]
    cells += [f"any/{kind}" for kind in SHARED]
    project.torchyard("build", *(f"package:{PREFIX}/cpu-{blas}/{cell}" for cell in cells))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Build a part of the matrix, once for all processes of a test run."""
    with shared_sample(tmp_path_factory) as project:
        for blas, pythons in IN_CI.items():
            build(project, blas, pythons)
    return project


@pytest.fixture(scope="module")
def channel(built: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a conda channel with all that the packages need."""
    channel = tmp_path_factory.mktemp("channel")
    place = channel / SUBDIR
    for tag in MOST:
        if find_python(tag) is None:
            pytest.skip(f"there is no {tag} here to make a conda package of")
    make_channel(channel, MOST)
    for blas, pythons in IN_CI.items():
        cells = [*(f"{tag}/conda" for tag in pythons), "any/conda-libtorch"]
        jobs = [f"package:{PREFIX}/cpu-{blas}/{cell}" for cell in cells]
        built.torchyard("store", "get", *jobs, "-o", place)
    index(channel)
    return channel


def assert_works(python: Path, blas: str, version: str = "1.2.0+cpu") -> None:
    said = call(python, "-I", "-c", USE, cwd=python.parent)
    assert said.startswith(f"{version}\n")
    assert f"BLAS_INFO={BLAS[blas]}," in said


# ------------------------------------------------------------------ packages work


@pytest.mark.parametrize(("tag", "blas"), CELLS)
def test_wheels_are_installed_by_pip_and_by_uv_and_work(
    built: Project, tmp_path: Path, tag: str, blas: str
) -> None:
    wheel = built.package(f"cpu-{blas}/{tag}/wheel", tmp_path)
    interpreter = interpreter_for(tag).path
    by_pip, by_uv = tmp_path / "pip/bin/python", tmp_path / "uv/bin/python"
    call("uv", "venv", "--no-project", "--seed", "--python", interpreter, tmp_path / "pip")
    call(by_pip, "-m", "pip", "install", wheel)
    call("uv", "venv", "--no-project", "--python", interpreter, tmp_path / "uv")
    call("uv", "pip", "install", "--python", by_uv, wheel)
    for python in (by_pip, by_uv):
        assert_works(python, blas)
        assert call(python.with_name("tt-config")).startswith("tinytorch 1.2.0+cpu\n")


@pytest.mark.parametrize(
    ("tag", "blas"), [(tag, blas) for blas, pythons in IN_CI.items() for tag in pythons]
)
def test_conda_packages_are_solved_for_installed_and_work(
    channel: Path, tmp_path: Path, tag: str, blas: str
) -> None:
    specs = [f"tinytorch ==1.2.0 cpu_{blas}_*", f"python {tag[2]}.{tag[3:]}.*"]
    chosen = solve_and_install(channel, specs, tmp_path / "prefix")
    assert set(chosen.builds) == {
        "libgcc",
        "libstdcxx",
        "libtinytorch",
        "python",
        "python_abi",
        "tinytorch",
        "typing_extensions",
    }
    assert chosen.builds["libtinytorch"].startswith(f"cpu_{blas}_h")
    assert_works(tmp_path / "prefix/bin/python", blas)


def test_packages_have_the_licence_and_the_tests_of_the_source(
    built: Project, tmp_path: Path
) -> None:
    libraries = read_package(built.package("cpu-openblas/any/conda-libtorch", tmp_path))
    assert {*libraries.files} >= {"info/licenses/LICENSE"}
    about = conda_index(libraries)
    assert about is not None
    assert about.license == "BSD-3-Clause"
    tests = read_package(built.package("cpu-openblas/cp312/conda-tests", tmp_path))
    assert "share/tinytorch/test/test_add.py" in tests.files


@pytest.mark.parametrize("blas", [pytest.param("mkl", marks=slow), "openblas"])
def test_a_cpp_program_is_built_upon_libtorch(built: Project, tmp_path: Path, blas: str) -> None:
    with ZipFile(built.package(f"cpu-{blas}/any/libtorch", tmp_path)) as archive:
        archive.extractall(tmp_path)
    cmake = ("uv", "tool", "run", "--from", "cmake==3.31.10", "cmake")
    found = f"-DCMAKE_PREFIX_PATH={tmp_path / 'libtinytorch'}"
    call(*cmake, "-G", "Ninja", "-S", SAMPLE / "cpp_user", "-B", "user", found, cwd=tmp_path)
    call(*cmake, "--build", "user", cwd=tmp_path)
    said = call("user/cpp_user", cwd=tmp_path)
    assert said.startswith("4 6\n19 22 43 50\nadd: ")
    assert f"BLAS_INFO={BLAS[blas]}," in said


# ------------------------------------------------------------- compiled only once


@pytest.mark.parametrize(("pythons", "blas"), MATRIX)
def test_a_core_is_compiled_once_for_all_pythons_and_formats(
    built: Project, tmp_path: Path, blas: str, pythons: list[str]
) -> None:
    build(built, blas, pythons)
    core = f"core:{PREFIX}/cpu-{blas}"
    built.torchyard("store", "get", core, "-o", tmp_path)
    made = outputs(ninja_made(tmp_path / "ninja_log"))
    units = {name for name in made if name.endswith(".o")}
    assert len(units) == CORE_UNITS
    assert set(made.values()) == {1}

    assert built.compiled(core) == dict.fromkeys(units, 1)
    bound: Counter[str] = Counter()
    for tag in pythons:
        bound += built.compiled(f"bindings:{PREFIX}/cpu-{blas}/{tag}")
    assert {Path(name).name: times for name, times in bound.items()} == dict.fromkeys(
        BOUND, len(pythons)
    )
    assert all(name.startswith("csrc/") for name in bound)
    assert not built.compiled(f"package:{PREFIX}/cpu-{blas}/*")


def assert_nothing_of_the_core_was_made(project: Project, work: Path, scratch: Path) -> None:
    """Compare what ninja wrote down in a bindings job with what it had done in the core."""
    project.torchyard("store", "get", f"core:{PREFIX}/cpu-openblas", "-o", scratch)
    before = ninja_made(scratch / "ninja_log")
    (log,) = work.glob("bindings-*/job/build/build/.ninja_log")
    after = ninja_made(log)
    compiled = {line for line in before if line[3] in outputs(before)}
    assert len(compiled) > CORE_UNITS
    assert all(after[line] == 1 for line in compiled)
    new = outputs(after - before)
    assert set(new.values()) == {1}
    assert {Path(name).name for name in new if name.endswith(".o")} == BOUND
    assert {Path(name).name.partition(".")[0] for name in new if name.endswith(".so")} == {
        "libtt_python",
        "_C",
    }
    assert len(new) == len(BOUND) + 2


@slow
def test_bindings_need_only_the_store_in_another_directory_and_home(
    built: Project, tmp_path: Path
) -> None:
    """The core's own directory is gone, as always; all others are elsewhere, too.

    In CI, the test with another user has all of that.
    """
    assert not list((built.folder / ".torchyard/work").glob("core-*"))
    elsewhere = copy_sample(tmp_path / "a/longer path/tinytorch")
    store, work = tmp_path / "store", tmp_path / "work"
    jobs = (f"core:{PREFIX}/cpu-openblas", f"source:{PREFIX.partition('/')[0]}")
    built.torchyard("store", "push", store, *jobs)
    (tmp_path / "home").mkdir()
    pyenv = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    elsewhere.torchyard(
        *("run", f"bindings:{PREFIX}/cpu-openblas/{OTHER}"),
        *("--store", store, "--work", work, "--keep"),
        env={"HOME": str(tmp_path / "home"), "PYENV_ROOT": pyenv},
    )
    assert_nothing_of_the_core_was_made(built, work, tmp_path / "core")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_bindings_are_compiled_by_another_user(built: Project, tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    ids = (f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
    become = ("setpriv", *ids)
    with TemporaryDirectory() as folder:  # pytest's own can be seen by nobody else
        place = Path(folder)
        place.chmod(0o755)
        home = {"HOME": str(place / "home")}
        python = python_for_others(place / "venv")
        if run(*become, python, "-c", "import torchyard", cwd=place).returncode:
            pytest.skip(f"others can't use Python {sys.version_info[:2]} with what is installed")
        asked = run(*become, python, "-c", TAGS, env=home, cwd=place.parent)
        tags = [tag for tag in (*MOST, *REST) if tag in asked.stdout.split()]
        if not tags:
            pytest.skip(f"others find no Python here: {asked.stderr}")
        if run(*become, "bwrap", "--dev-bind", "/", "/", "true", cwd=place.parent).returncode:
            pytest.skip("only root may use bwrap here")
        project = copy_sample(place / "tinytorch")
        jobs = (f"core:{PREFIX}/cpu-openblas", f"source:{PREFIX.partition('/')[0]}")
        built.torchyard("store", "push", project.store, *jobs)
        (place / "home").mkdir()
        call("chown", "-R", f"{nobody.pw_uid}:{nobody.pw_gid}", place)
        job = f"bindings:{PREFIX}/cpu-openblas/{tags[0]}"
        words = (python, "-m", "torchyard", "run", job, "--keep")
        call(*become, *words, env=home, cwd=project.folder)
        work = project.folder / ".torchyard/work"
        assert {path.owner() for path in work.glob("*/job/build/build/lib/*.so")} == {"nobody"}
        assert_nothing_of_the_core_was_made(built, work, tmp_path)


@slow
def test_a_core_that_knows_the_python_is_refused(tmp_path: Path) -> None:
    project = copy_sample(tmp_path / "tinytorch", FEW_UNITS + " }")
    with (project.folder / "aten/CMakeLists.txt").open("a", encoding="utf-8") as file:
        file.write('target_compile_definitions(tt_cpu PRIVATE TT_PYTHON="${Python_VERSION}")\n')
    said = project.refused("build", f"bindings:{PREFIX}/cpu-openblas/{OTHER}")
    assert (
        "the core would be compiled again for this Python: "
        "command line changed for aten/CMakeFiles/tt_cpu.dir/config.cpp.o\n"
    ) in said
    assert "nothing of the core may depend on Python" in said


# ---------------------------------------------------------------- always the same


@pytest.mark.parametrize(("pythons", "blas"), MATRIX)
def test_all_wheels_of_a_cell_have_the_same_core(
    built: Project, tmp_path: Path, blas: str, pythons: list[str]
) -> None:
    wheels = [built.package(f"cpu-{blas}/{tag}/wheel", tmp_path) for tag in pythons]
    first, *others = map(core_libraries, wheels)
    assert {"tinytorch/lib/libtt_c10.so", "tinytorch/lib/libtt_cpu.so"} <= set(first)
    assert all(other == first for other in others)
    assert len(set(map(metadata, wheels))) == 1


@slow
def test_a_core_that_was_changed_for_a_python_is_not_packed(tmp_path: Path) -> None:
    labels = FEW_UNITS + ', TT_UNSTABLE_LABELS = "ON" }'
    project = copy_sample(tmp_path / "tinytorch", labels)
    said = project.refused("build", f"package:{PREFIX}/cpu-openblas/cp312/wheel")
    assert re.search(
        r"`libtt_cpu.so` of the bindings is not that of the core: it adds `nnp_label_[0-9a-f]{12}`",
        said,
    )


def test_both_backends_put_the_same_files_into_wheels(built: Project, tmp_path: Path) -> None:
    """MKL is static, so that only OpenBLAS has libraries to bring; only setuptools says what is
    at the top level."""
    files = {}
    for blas in BLAS:
        with ZipFile(built.package(f"cpu-{blas}/{MOST[0]}/wheel", tmp_path)) as wheel:
            files[blas] = {re.sub(r"-[0-9a-f]{8}\.so", ".so", name) for name in wheel.namelist()}
    assert files["mkl"] - files["openblas"] == {"tinytorch-1.2.0+cpu.dist-info/top_level.txt"}
    (brought,) = files["openblas"] - files["mkl"]
    assert Path(brought).name == "libscipy_openblas.so"


@slow
@pytest.mark.parametrize(
    ("cells", "count"),
    [
        ("cpu-*", 22),
        pytest.param("cu130-*", 6, marks=needs_cuda),
        pytest.param("rocm5.2-*", 1, marks=needs_rocm),
    ],
)
def test_a_second_build_elsewhere_gives_the_same_packages(
    built: Project, tmp_path: Path, cells: str, count: int
) -> None:
    built.torchyard("build", f"package:{PREFIX}/{cells}")
    again = copy_sample(tmp_path / "quite another/and longer/place")
    again.torchyard("build", f"package:{PREFIX}/{cells}", env={"PYTHONHASHSEED": "7"})
    first = built.packages(cells)
    assert len(first) == count
    assert again.packages(cells) == first


# ---------------------------------------------------------------------------- GPUs


def install_gpu_wheel(wheel: Path, folder: Path, *more: str) -> Path:
    python = folder / "venv/bin/python"
    interpreter = interpreter_for("cp312").path
    call("uv", "venv", "--no-project", "--python", interpreter, folder / "venv")
    call("uv", "pip", "install", "--python", python, wheel, *more)
    return python


@slow
@needs_cuda
@pytest.mark.parametrize(("compute", "release"), [("cu130", "13.0"), ("cu132", "13.2")])
def test_cuda_wheels_have_device_code_and_work_without_a_gpu(
    built: Project, tmp_path: Path, compute: str, release: str
) -> None:
    wheel = built.package(f"{compute}-openblas/cp312/wheel", tmp_path)
    with ZipFile(wheel) as archive:
        found = device_code(archive.read("tinytorch/lib/libtt_cuda.so"))
    assert found == {("elf", 80), ("elf", 90), ("ptx", 90)}
    runtime = read_lock(f"cuda-{release}").versions["nvidia-cuda-runtime"]
    python = install_gpu_wheel(wheel, tmp_path, f"nvidia-cuda-runtime=={runtime}")
    assert_works(python, "openblas", f"1.2.0+{compute}")
    cuda, libraries = call(python, "-I", "-c", USE_GPU).split("\n", maxsplit=1)
    assert cuda == release
    assert f"{tmp_path}/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart" in libraries


@slow
@needs_rocm
def test_a_rocm_wheel_has_device_code_and_works_without_a_gpu(
    built: Project, tmp_path: Path
) -> None:
    wheel = built.package("rocm5.2-openblas/cp312/wheel", tmp_path)
    with ZipFile(wheel) as archive:
        library = archive.read("tinytorch/lib/libtt_cuda.so")
    found = set(re.findall(rb"amdgcn-amd-amdhsa--(gfx\w+)", library))
    assert found == {b"gfx906", b"gfx90a"}
    assert_works(install_gpu_wheel(wheel, tmp_path), "openblas", "1.2.0+rocm5.2")
