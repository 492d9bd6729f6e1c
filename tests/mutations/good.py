"""Valid packages: compiled by gcc, and written as torchyard writes its own."""

import platform
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import msgspec
from tests.mutations.zstd import decompress
from tests.support.libraries import BILL

from torchyard.model.canonical import fingerprint
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.step import Setting
from torchyard.package.conda.metadata import CondaBuild, CondaKind
from torchyard.package.conda.write import Sources, assemble_conda
from torchyard.package.libtorch.assemble import assemble_libtorch
from torchyard.package.libtorch.write import ZipLabel
from torchyard.package.wheel.assemble import assemble_wheel
from torchyard.package.wheel.name import WheelTags
from torchyard.package.wheel.write import write_wheel

MACHINE = platform.machine()
PLATFORM = f"manylinux_2_28_{MACHINE}"
SUBDIR = "linux-64" if MACHINE == "x86_64" else f"linux-{MACHINE}"
PYTHON = "cp312"
MODULE = f"_C.cpython-312-{MACHINE}-linux-gnu.so"
COMMIT = "704754640b09a082545e24a58c2425d9a1c18427"
CUDNN = "9.13.0.50"
ARCHS = ("8.0", "9.0+PTX")
SETTINGS: dict[str, Setting] = {"archs": ARCHS, "cudnn": CUDNN}

METADATA = """\
Metadata-Version: 2.4
Name: tinytorch
Version: 0
License-Expression: MIT
Requires-Dist: numpy>=2

Text.
"""
CONFIG = """\
get_filename_component(ROOT "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TINYTORCH_INCLUDE_DIRS "${ROOT}/include")
set(TINYTORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")
"""
C10 = """\
#include <string>
const std::string &c10_name(const std::string &other) { return other; }
"""
GOMP = "void GOMP_parallel(void) {}"
CUDA = "int cuda(void) { return 1; }"
MAGMA = "int magma_init(void) { return 0; }"
MODULE_CODE = """\
int module_state;
void *PyModule_Create2(void *, int), *PyLong_FromLong(long);
void *PyInit__C(void) { return PyModule_Create2(PyLong_FromLong(1), 1013); }
"""
EXTENSION_CODE = (
    MODULE_CODE
    + """\
int torch_library_impl(void *, const char *, void *, unsigned long);
int impl(void) { return torch_library_impl(0, "", 0, 0); }
"""
)
"""A module of Python's stable ABI and of torch's, whose newest function is of torch 2.10."""
KERNEL = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HH", 2, 190).ljust(48, b"\0")
"""A program for a GPU in a file of its own, as an ELF file without anything in it."""


class Program(NamedTuple):
    """A program for GPUs: machine code of an architecture such as 90, or PTX."""

    arch: int
    is_ptx: bool = False


def fat_binary(programs: Sequence[Program]) -> bytes:
    """A container as nvcc makes it, with as many zeros as code would have."""
    shape = struct.Struct("<HHIQIIHHIIIQ")
    content = b"".join(
        shape.pack(1 if p.is_ptx else 2, 0x101, shape.size, 64, 0, 0, 0, 0, p.arch, 0, 0, 0)
        + bytes(64)
        for p in programs
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


def with_device_code(code: str, programs: Sequence[Program]) -> str:
    """C code with a fat binary beside it."""
    numbers = ",".join(map(str, fat_binary(programs)))
    placed = '__attribute__((section(".nv_fatbin"), aligned(8), used))'
    return f"{code}\nstatic const unsigned char fatbin[] {placed} = {{{numbers}}};\n"


DEVICE_PROGRAMS = (Program(80), Program(90), Program(90, is_ptx=True))


def compiled(
    path: Path,
    code: str,
    *needs: Path,
    rpath: str = "$ORIGIN",
    options: Sequence[str] = (),
) -> Path:
    """A library with a RUNPATH; code with `#include <` is C++."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_cxx = "#include <" in code
    flags = ["-shared", "-fPIC", "-O1", "-Wl,--no-as-needed,--build-id,--enable-new-dtags"]
    flags += ["-Wl,--hash-style=gnu", "-Wl,-z,noexecstack", f"-Wl,-soname,{path.name}"]
    flags += [f"-Wl,-rpath,{rpath}"] if rpath else []
    words = ["g++" if is_cxx else "gcc", *flags, "-x", "c++" if is_cxx else "c", "-"]
    words += ["-x", "none", *map(str, needs), "-Wl,--allow-shlib-undefined", "-o", str(path)]
    subprocess.run([*words, *options], input=code, text=True, check=True)
    return path


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class Built(NamedTuple):
    """The output of a core and of bindings for one Python; `core` has `install` and `vendor`."""

    core: Path
    image: Path


def build(root: Path, compute: str) -> Built:
    """`_C → libtt_python → libtt_cpu → libc10`, vendored libgomp, and maybe a library for CUDA."""
    install, vendor, image = root / "core/install", root / "core/vendor", root / "image"
    package = image / "tinytorch"
    gomp = compiled(vendor / "libgomp.so.1", GOMP)
    c10 = compiled(install / "lib/libc10.so", C10)
    cpu = compiled(install / "lib/libtt_cpu.so", "int cpu(void) { return 0; }", c10, gomp)
    if compute != "cpu":
        code = with_device_code(CUDA, DEVICE_PROGRAMS)
        needs = [compiled(root / name, "int x;") for name in ("libcudart.so.13", "libcudnn.so.9")]
        cpu = compiled(install / "lib/libtt_cuda.so", code, cpu, *needs)
        (install / "kernels").mkdir()
        (install / "kernels/add.cubin").write_bytes(KERNEL)
    written(install / "include/tinytorch.h", "int cpu(void);\n")
    written(install / "share/cmake/TinyTorch/TinyTorchConfig.cmake", CONFIG)
    shutil.copytree(install, package)
    code = "int binding; void *PyList_New(long); void *bind(void) { return PyList_New(0); }"
    python = compiled(package / "lib/libtt_python.so", code, cpu)
    compiled(package / MODULE, MODULE_CODE, python)
    written(package / "__init__.py", "from tinytorch.version import __version__\n")
    version = f"__version__ = '1.2.0+{compute}'\ngit_version = '{COMMIT}'\n"
    written(package / "version.py", version)
    written(image / "tinytorch-0.dist-info/METADATA", METADATA)
    written(image / "tinytorch-0.dist-info/sboms/tinytorch.cdx.json", "{}\n")
    written(image / "tinytorch-0.dist-info/licenses/LICENSE", "Use it.\n")
    written(root / "core/project/pyproject.toml", '[project]\nlicense = "MIT"\n')
    written(root / "core/project/LICENSE", "Use it.\n")
    return Built(root / "core", image)


def job_for(cell: str, settings: dict[str, Setting] | None = None) -> JobSpec:
    """The specification of the job that makes the package of a cell."""
    scope = cell.partition("/")[2]
    compute = scope.split("/")[1].partition("-")[0]
    source = _task("source:tinytorch-1.2.0", Stage.SOURCE, scope="", settings={"commit": COMMIT})
    package = _task(
        f"package:{cell}",
        Stage.PACKAGE,
        scope=scope,
        settings=settings or (SETTINGS if compute != "cpu" else {}),
        inputs=(source.fingerprint,),
    )
    return JobSpec(tasks=(source, package))


def _task(
    task_id: str,
    stage: Stage,
    scope: str,
    settings: dict[str, Setting],
    inputs: tuple[str, ...] = (),
) -> Task:
    """Return a task whose fingerprint matches its content."""
    task = Task(
        id=task_id,
        stage=stage,
        stage_revision=1,
        scope=scope,
        recipe="pytorch",
        fingerprint="",
        inputs=inputs,
        settings=settings,
    )
    return msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))


def make_spec(folder: Path, compute: str, python: str, kind: str) -> Path:
    """A spec for one package, true as far as its fingerprint goes."""
    spec = job_for(f"tinytorch-1.2.0/linux-{MACHINE}/{compute}-openblas/{python}/{kind}")
    path = written(folder / "torchyard-spec.json", "")
    path.write_bytes(msgspec.json.encode(spec))
    return path


def make_wheel(built: Built, place: Path, compute: str) -> Path:
    return assemble_wheel(
        install=built.core / "install",
        vendor=built.core / "vendor",
        image=built.image,
        scratch=place / "scratch",
        out=place / "out",
        name="tinytorch",
        version=f"1.2.0+{compute}",
        python=PYTHON,
        platform_tag=PLATFORM,
        compute=compute,
        toolkit="13.0",
        pins={"cudnn": CUDNN},
        spec=make_spec(place, compute, PYTHON, "wheel"),
        bill=BILL,
    ).package


def make_libtorch(built: Built, place: Path) -> Path:
    return assemble_libtorch(
        ZipLabel("tinytorch", "1.2.0+cpu", "linux-x86_64"),
        install=built.core / "install",
        vendor=built.core / "vendor",
        scratch=place / "scratch",
        out=place / "out",
        compute="cpu",
        git_hash=COMMIT,
        spec=make_spec(place, "cpu", "any", "libtorch"),
        bill=BILL,
    ).package


def make_conda(kind: CondaKind, built: Built, place: Path, compute: str = "cpu") -> Path:
    build = CondaBuild(
        name="tinytorch",
        version="1.2.0",
        compute=compute,
        blas="openblas",
        subdir=SUBDIR,
        build_hash="1111111",
        core_hash="2222222",
        python=PYTHON if kind is CondaKind.PACKAGE else None,
    )
    spec = make_spec(place, compute, PYTHON if build.python else "any", str(kind))
    return assemble_conda(
        kind,
        build,
        Sources(built.core, built.image, None),
        scratch=place / "scratch",
        out=place / "out",
        spec=spec,
        bill=BILL,
    )


def make_old(package: Path, out: Path) -> Path:
    """The same conda package in the format that was used before."""
    out.mkdir()
    path = out / f"{package.name.removesuffix('.conda')}.tar.bz2"
    with tarfile.open(path, "w:bz2") as archive, ZipFile(package) as parts:
        for name in parts.namelist():
            if name.endswith(".tar.zst"):
                data = BytesIO(decompress(parts.read(name)))
                with tarfile.open(fileobj=data) as part:
                    for info in part.getmembers():
                        archive.addfile(info, part.extractfile(info) if info.isreg() else None)
    return path


def make_stable(place: Path) -> Path:
    """Return a wheel of the stable ABI that was not built by torchyard."""
    image = place / "image"
    package = image / "tinystable"
    library = compiled(package / "lib/libstable.so", "int stable(void) { return 1; }")
    module = package / "_C.abi3.so"
    compiled(module, MODULE_CODE, library, rpath="$ORIGIN/lib")
    written(package / "__init__.py", "")
    about = METADATA.replace("tinytorch", "tinystable")
    written(image / "tinystable-0.dist-info/METADATA", about)
    return write_wheel(
        image,
        place / "out",
        name="tinystable",
        version="0.3",
        tags=WheelTags("cp310", "abi3"),
        platform_tag=PLATFORM,
        requires=[],
        spec=written(place / "build.json", "{}"),
    )


def make_extension(place: Path) -> Path:
    """Return a wheel of an extension, of the stable ABIs of Python and of torch."""
    image = place / "image"
    torch = compiled(place / "libtorch.so", "int torch_library_impl(void) { return 0; }")
    compiled(image / "tinyext/_C.abi3.so", EXTENSION_CODE, torch)
    written(image / "tinyext/__init__.py", "import torch\n")
    about = METADATA.replace("tinytorch", "tinyext").replace("numpy>=2", "torch>=2.10")
    written(image / "tinyext-0.dist-info/METADATA", about)
    return write_wheel(
        image,
        place / "out",
        name="tinyext",
        version="0.1",
        tags=WheelTags("cp310", "abi3"),
        platform_tag=PLATFORM,
        requires=[],
        spec=written(place / "build.json", "{}"),
    )


def make_torch(place: Path) -> Path:
    """Return a wheel of a torch that has what the extension needs."""
    image = place / "image"
    torch = compiled(image / "torch/lib/libtorch.so", "int torch_library_impl(void) { return 0; }")
    compiled(image / "torch/_C.abi3.so", MODULE_CODE, torch, rpath="$ORIGIN/lib")
    written(image / "torch/__init__.py", "from torch import _C\n")
    written(image / "torch-0.dist-info/METADATA", METADATA.replace("tinytorch", "torch"))
    return write_wheel(
        image,
        place / "out",
        name="torch",
        version="2.13.0",
        tags=WheelTags("cp310", "abi3"),
        platform_tag=PLATFORM,
        requires=[],
        spec=written(place / "build.json", "{}"),
    )


def make_goods(root: Path) -> dict[str, Path]:
    """All good packages, by the names that mutations know them by."""
    cpu, cuda = build(root / "cpu", "cpu"), build(root / "cuda", "cu130")
    plugin = Built(root / "plugin", cpu.image)
    compiled(plugin.core / "install/lib/libtt_linalg.so", MAGMA)
    libraries = make_conda(CondaKind.LIBRARIES, cpu, root / "conda-libraries")
    return {
        "wheel": make_wheel(cpu, root / "wheel", "cpu"),
        "cuda": make_wheel(cuda, root / "cuda-wheel", "cu130"),
        "zip": make_libtorch(cpu, root / "zip"),
        "conda": make_conda(CondaKind.PACKAGE, cpu, root / "conda"),
        "conda-libraries": libraries,
        "conda-linalg": make_conda(CondaKind.LINALG, plugin, root / "conda-linalg", "cu130"),
        "conda-old": make_old(libraries, root / "conda-old"),
        "stable": make_stable(root / "stable"),
        "extension": make_extension(root / "extension"),
        "torch": make_torch(root / "torch"),
    }
