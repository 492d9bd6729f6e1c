"""Broken libraries: dependencies, search paths, exported symbols and GPU architectures."""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.mutations.good import (
    C10,
    CUDA,
    DEVICE_PROGRAMS,
    EXTENSION_CODE,
    GOMP,
    MACHINE,
    MAGMA,
    MODULE_CODE,
    Program,
    compiled,
    with_device_code,
)
from tests.mutations.mutation import (
    Break,
    Mutation,
    conda_edited,
    conda_members,
    members,
    removing,
    replacing,
    rewritten,
)
from tests.mutations.specs import STABLE_JOB

from torchyard.package.elf.edit import Rewrite, rewrite
from torchyard.package.elf.file import read_elf

LIB = "tinytorch/lib"
C10_SO, CPU_SO, CUDA_SO = f"{LIB}/libc10.so", f"{LIB}/libtt_cpu.so", f"{LIB}/libtt_cuda.so"
STABLE_SO, STABLE_MODULE = "tinystable/lib/libstable.so", "tinystable/_C.abi3.so"
LINALG_SO = "lib/libtt_linalg.so"
OTHER_MACHINE = 62 if MACHINE == "aarch64" else 183


def edited(member: str, change: Callable[[bytes], bytes]) -> Break:
    """Change the bytes of a library."""

    def make(good: Path, folder: Path) -> Path:
        content = members(good)[member]
        changed = change(content)
        assert changed != content
        return rewritten(good, folder, {member: changed})

    return make


def relinked(member: str, changes: Rewrite) -> Break:
    """Change what the loader reads of a library."""

    def make(good: Path, folder: Path) -> Path:
        path = folder / "library"
        path.write_bytes(members(good)[member])
        rewrite(path, changes)
        content = path.read_bytes()
        path.unlink()
        return rewritten(good, folder, {member: content})

    return make


def recompiled(member: str, code: str, *options: str) -> Break:
    """Compile a library that needs nothing anew, in another way."""

    def make(good: Path, folder: Path) -> Path:
        path = compiled(folder / "new" / Path(member).name, code, options=options)
        return rewritten(good, folder, {member: path.read_bytes()})

    return make


def needing(
    member: str,
    *libraries: str,
    bring: Sequence[str] = (),
    without: Sequence[str] = (),
    code: str = "",
) -> Break:
    """Compile a library with the same rpath that needs others; some may be brought along."""

    def make(good: Path, folder: Path) -> Path:
        stubs = folder / "stubs"
        old = stubs / "old"
        stubs.mkdir()
        old.write_bytes(members(good)[member])
        elf = read_elf(old)
        assert elf is not None
        directories = elf.rpath or elf.runpath
        dtags = "-Wl,--disable-new-dtags" if elf.rpath else "-Wl,--enable-new-dtags"
        names = [name for name in (*elf.needed, *libraries) if name not in ("libc.so.6", *without)]
        needs = {
            name: compiled(stubs / name, "int stub;", rpath=directories, options=[dtags])
            for name in names
        }
        path = compiled(
            folder / "made" / Path(member).name,
            code or "int made;",
            *needs.values(),
            rpath=directories,
            options=[dtags],
        )
        edits = {member: path.read_bytes()}
        edits |= {str(Path(member).with_name(name)): needs[name].read_bytes() for name in bring}
        return rewritten(good, folder, edits)

    return make


def with_device(*programs: Program) -> Break:
    return needing(CUDA_SO, code=with_device_code(CUDA, programs))


def moved_gomp(good: Path, folder: Path) -> Path:
    """Move libgomp to a directory on no search path, with a correct rpath for it."""
    path = compiled(folder / "new/libgomp.so.1", GOMP, rpath="$ORIGIN:$ORIGIN/../lib")
    edits = {f"{LIB}/libgomp.so.1": None, "tinytorch/other/libgomp.so.1": path.read_bytes()}
    return rewritten(good, folder, edits)


def with_orphan(good: Path, folder: Path) -> Path:
    path = compiled(folder / "new/libleft.so", "int left;")
    return rewritten(good, folder, {f"{LIB}/libleft.so": path.read_bytes()})


def with_copy(name: str) -> Break:
    """Bring a library of torch along, which the module needs."""

    def make(good: Path, folder: Path) -> Path:
        path = compiled(folder / "new" / name, showing("_ZN3c104nameEv"))
        needy = needing(EXTENSION_SO, name, code=EXTENSION_CODE)(good, folder)
        (folder / "both").mkdir()
        return rewritten(needy, folder / "both", {f"tinyext/{name}": path.read_bytes()})

    return make


def needing_newer(library: str, version: str) -> Break:
    """Make a library need a function of a system library's version that does not exist."""

    def make(good: Path, folder: Path) -> Path:
        script = folder / "versions"
        script.write_text(f"{version} {{ newer; }};", encoding="utf-8")
        option = f"-Wl,--version-script={script}"
        stub = compiled(
            folder / "stubs" / library, "int newer(void) { return 1; }", options=[option]
        )
        path = compiled(folder / "made/libc10.so", calling("newer"), stub, options=["-nostdlib"])
        return rewritten(good, folder, {C10_SO: path.read_bytes()})

    return make


def calling(*names: str) -> str:
    """C code that needs functions."""
    declared = "".join(f"void {name}(void); " for name in names)
    return f"{declared} void caller(void) {{ {''.join(f'{name}(); ' for name in names)} }}"


def showing(symbol: str) -> str:
    """C code that shows a function under a name that C does not have."""
    return f'int shown(void) __asm__("{symbol}"); int shown(void) {{ return 1; }}'


def conda_relinked(good: Path, folder: Path) -> Path:
    path = folder / "library"
    path.write_bytes(conda_members(good)["lib/libc10.so"])
    rewrite(path, Rewrite(rpath="/opt/lib"))
    return conda_edited({"lib/libc10.so": path.read_bytes()})(good, folder)


def conda_recompiled(member: str, code: str, name: tuple[str, str] = ("", "")) -> Break:
    """Compile a library of a conda package anew; `name` is what changes in the package's name."""

    def make(good: Path, folder: Path) -> Path:
        path = compiled(folder / "new" / Path(member).name, code)
        index = conda_members(good)["info/index.json"].decode().replace(*name)
        edits = {member: path.read_bytes(), "info/index.json": index.encode()}
        return conda_edited(edits, good.name.replace(*name))(good, folder)

    return make


def with_runpath(good: Path, folder: Path) -> Path:
    """The right directories, in the wrong place."""
    path = folder / "library"
    path.write_bytes(members(good)[CUDA_SO])
    elf = read_elf(path)
    assert elf is not None
    return relinked(CUDA_SO, Rewrite(rpath=elf.rpath, force_rpath=False))(good, folder)


def machine(number: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:18] + struct.pack("<H", number) + data[20:]


OLD_STRINGS = "-D_GLIBCXX_USE_CXX11_ABI=0"
TEXT_RELOCATION = 'int c10_value; __asm__(".text\\n.quad c10_value\\n.previous");'
FILESYSTEM = "_ZNSt10filesystem7__cxx1128recursive_directory_iteratorppEv"
PROTOBUF = "_ZN6google8protobuf11MessageLite5ClearEv"
RPATHS = "linking-rpath"


def _wheel(name: str, rule: str, make: Break, *also: str) -> Mutation:
    return Mutation(name, "wheel", rule, make, also)


def _cuda(name: str, rule: str, make: Break, *also: str) -> Mutation:
    return Mutation(name, "cuda", rule, make, also)


def _stable(name: str, rule: str, make: Break, *also: str) -> Mutation:
    return Mutation(name, "stable", rule, make, also)


LINKING = [
    _wheel("library removed", "linking-unresolved", removing("libgomp.so.1"), "sbom-wrong"),
    _wheel("unknown library needed", "linking-unresolved", needing(CPU_SO, "libnobody.so.3")),
    _stable(
        "libpython needed",
        "symbols-python",
        needing(STABLE_SO, "libpython3.12.so.1.0"),
        "linking-unresolved",
    ),
    _cuda(
        "sibling wheel undeclared",
        "linking-undeclared",
        replacing("/METADATA", "Requires-Dist: nvidia-cudnn-cu13", "Requires-External: cudnn"),
    ),
    _cuda(
        "extra of the toolkit undeclared",
        "linking-undeclared",
        replacing("/METADATA", "cuda-toolkit[cudart]", "cuda-toolkit[cublas]"),
    ),
    _wheel("library where nobody looks", "linking-environment", moved_gomp),
    _stable(
        "module without an rpath", "linking-environment", relinked(STABLE_MODULE, Rewrite(rpath=""))
    ),
    _wheel("library that nobody needs", "linking-orphan", with_orphan),
    _cuda(
        "part of NVRTC missing",
        "linking-opened",
        needing(
            CUDA_SO,
            "libnvrtc.so.13",
            bring=["libnvrtc.so.13"],
            code=with_device_code(CUDA, DEVICE_PROGRAMS),
        ),
    ),
    _wheel(
        "second OpenMP",
        "linking-openmp",
        needing(C10_SO, "libiomp5.so", bring=["libiomp5.so"]),
        "sbom-wrong",
    ),
    _wheel("OpenMP linked in", "linking-openmp", recompiled(C10_SO, GOMP)),
    _stable(
        "absolute rpath",
        "linking-rpath-outside",
        relinked(STABLE_SO, Rewrite(rpath="$ORIGIN:/usr/local/cuda/lib64")),
    ),
    _stable(
        "empty entry in an rpath",
        "linking-rpath-outside",
        relinked(STABLE_SO, Rewrite(rpath="$ORIGIN:")),
    ),
    _stable(
        "rpath that leads too high",
        "linking-rpath-above",
        relinked(STABLE_SO, Rewrite(rpath="$ORIGIN/../../../lib")),
    ),
    Mutation(
        "absolute rpath in a conda package",
        "conda-libraries",
        "linking-rpath-outside",
        conda_relinked,
        (RPATHS,),
    ),
    _wheel(
        "rpath of another layout",
        RPATHS,
        relinked(C10_SO, Rewrite(rpath="$ORIGIN:$ORIGIN/../lib64")),
    ),
    _wheel("no rpath", RPATHS, relinked(C10_SO, Rewrite(rpath=""))),
    Mutation(
        "rpath of another layout in a zip",
        "zip",
        RPATHS,
        relinked("libtinytorch/lib/libc10.so", Rewrite(rpath="$ORIGIN/../lib")),
    ),
    _wheel(
        "RPATH instead of RUNPATH",
        "linking-rpath-kind",
        relinked(C10_SO, Rewrite(rpath="$ORIGIN", force_rpath=True)),
    ),
    _cuda("RUNPATH instead of RPATH", "linking-rpath-kind", with_runpath),
]

SYMBOLS = [
    _wheel("newer glibc", "symbols-ceiling", needing_newer("libc.so.6", "GLIBC_2.99")),
    _wheel("newer C++", "symbols-ceiling", needing_newer("libstdc++.so.6", "GLIBCXX_3.4.99")),
    _stable(
        "function that nothing defines",
        "symbols-undefined",
        needing(STABLE_MODULE, code=MODULE_CODE + calling("_ZN7fastops10fast_tableEi")),
    ),
    _wheel("old std::string", "symbols-abi", recompiled(C10_SO, C10, OLD_STRINGS)),
    _wheel(
        "function of the C++ runtime",
        "symbols-forbidden",
        recompiled(C10_SO, showing("__cxa_throw")),
    ),
    _wheel("std::filesystem leaks", "symbols-leaked", recompiled(C10_SO, showing(FILESYSTEM))),
    _wheel("protobuf leaks", "symbols-leaked", recompiled(C10_SO, showing(PROTOBUF))),
    _wheel("executable stack", "symbols-stack", recompiled(C10_SO, C10, "-Wl,-z,execstack")),
    _wheel(
        "text relocations", "symbols-textrel", recompiled(C10_SO, TEXT_RELOCATION, "-Wl,-z,notext")
    ),
    _wheel("no GNU hash", "symbols-hash", recompiled(C10_SO, C10, "-Wl,--hash-style=sysv")),
    _wheel("no build id", "symbols-build-id", recompiled(C10_SO, C10, "-Wl,--build-id=none")),
    _stable(
        "function that is not stable",
        "symbols-python",
        needing(STABLE_MODULE, code=MODULE_CODE + calling("PyUnicode_AsUTF8")),
    ),
    _stable(
        "function of a newer stable ABI",
        "symbols-python",
        needing(
            STABLE_MODULE, code=MODULE_CODE + calling("PyModule_AddObjectRef", "PyType_GetName")
        ),
    ),
    _stable(
        "function that may be a stranger's",
        "symbols-python-unsure",
        needing(STABLE_MODULE, "libstranger.so", code=MODULE_CODE + calling("PyUnicode_AsUTF8")),
        "linking-unresolved",
    ),
    _wheel(
        "free-threaded code",
        "symbols-python",
        needing(f"{LIB}/libtt_python.so", code=calling("_Py_DecRefShared")),
    ),
    _wheel(
        "core that needs Python", "symbols-python-core", recompiled(C10_SO, calling("PyList_New"))
    ),
    _wheel("other machine", "label-platform", edited(C10_SO, machine(OTHER_MACHINE))),
    _wheel("cut library", "archive-binary", edited(C10_SO, lambda data: data[: len(data) // 2])),
    _wheel(
        "damaged ELF header",
        "archive-binary",
        edited(C10_SO, lambda data: data[:32] + b"\xff" * 8 + data[40:]),
    ),
]

COMPUTE = [
    _cuda("missing architecture", "compute-archs", with_device(*DEVICE_PROGRAMS[1:])),
    _cuda("superfluous architecture", "compute-archs", with_device(*DEVICE_PROGRAMS, Program(75))),
    _cuda("missing PTX", "compute-archs", with_device(*DEVICE_PROGRAMS[:2])),
    _cuda("no code for GPUs", "compute-archs", needing(CUDA_SO)),
    _cuda(
        "cuDNN not used",
        "label-libraries",
        needing(CUDA_SO, without=["libcudnn.so.9"], code=with_device_code(CUDA, DEVICE_PROGRAMS)),
    ),
    _wheel(
        "another BLAS than specified",
        "label-libraries",
        needing(CPU_SO, "libmkl_rt.so.2", bring=["libmkl_rt.so.2"]),
    ),
    Mutation(
        "magma without MAGMA",
        "conda-linalg",
        "label-libraries",
        conda_recompiled(LINALG_SO, "int solve(void) { return 0; }"),
    ),
    Mutation(
        "nomagma with MAGMA",
        "conda-linalg",
        "label-libraries",
        conda_recompiled(LINALG_SO, MAGMA, ("_magma_", "_nomagma_")),
    ),
    _cuda(
        "wrong version of cuDNN",
        "compute-versions",
        replacing("/METADATA", "cudnn-cu13==9.13.0.50", "cudnn-cu13==9.12.0.46"),
    ),
    _cuda(
        "cuDNN of another CUDA",
        "compute-versions",
        replacing("/METADATA", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
    ),
    _cuda(
        "wrong version of the toolkit",
        "compute-versions",
        replacing("/METADATA", "[cudart]==13.0.*", "[cudart]==13.2.*"),
    ),
    _wheel(
        "CUDA in a package for the CPU",
        "label-compute",
        needing(CPU_SO, "libcudart.so.13", bring=["libcudart.so.13"]),
    ),
    _cuda(
        "runtime of another CUDA",
        "label-compute",
        needing(
            CUDA_SO,
            "libcudart.so.12",
            bring=["libcudart.so.12"],
            code=with_device_code(CUDA, DEVICE_PROGRAMS),
        ),
    ),
    _wheel(
        "code for GPUs in a package for the CPU",
        "label-compute",
        recompiled(C10_SO, with_device_code("int c10;", DEVICE_PROGRAMS)),
    ),
]


def _extension(name: str, rule: str, make: Break, *also: str) -> Mutation:
    return Mutation(name, "extension", rule, make, also)


EXTENSION_SO = "tinyext/_C.abi3.so"
TORCH_REQUIRED = "Requires-Dist: torch>=2.10"

TORCH = [
    _extension(
        "torch that is too old",
        "torch-floor",
        replacing("/METADATA", TORCH_REQUIRED, "Requires-Dist: torch>=2.9.1"),
    ),
    _extension(
        "any torch", "torch-floor", replacing("/METADATA", TORCH_REQUIRED, "Requires-Dist: torch")
    ),
    _extension(
        "no torch",
        "torch-floor",
        replacing("/METADATA", TORCH_REQUIRED, "Requires-External: x"),
        "linking-undeclared",
    ),
    _extension(
        "function of a newer torch",
        "torch-floor",
        needing(EXTENSION_SO, code=EXTENSION_CODE + calling("torch_from_blob")),
    ),
    _extension(
        "CUDA 12 beside a torch with CUDA 13",
        "torch-toolkit",
        needing(EXTENSION_SO, "libcudart.so.12", code=EXTENSION_CODE),
    ),
    _extension(
        "wheels of CUDA 12 beside a torch with CUDA 13",
        "torch-toolkit",
        replacing(
            "/METADATA",
            TORCH_REQUIRED,
            f"{TORCH_REQUIRED}\nRequires-Dist: nvidia-cuda-runtime-cu12",
        ),
    ),
    Mutation(
        "C++ functions of torch in a wheel for several",
        "extension",
        "label-abi",
        needing(EXTENSION_SO, code=EXTENSION_CODE + calling("_ZN3c104nameEv")),
        spec=STABLE_JOB,
    ),
    Mutation(
        "C++ function that torch does not have",
        "extension",
        "torch-symbols",
        needing(EXTENSION_SO, code=EXTENSION_CODE + calling("_ZN3c104nameEv")),
        beside=("torch",),
    ),
    _extension("module left out", "torch-empty", removing("/_C.abi3.so")),
    _extension(
        "copy of torch's library",
        "torch-vendored",
        with_copy("libc10.so"),
    ),
    _extension(
        "copy of torch's library, renamed",
        "torch-vendored",
        with_copy("libc10-0123abcd.so"),
        "sbom-missing",
    ),
]

BINARIES = [*LINKING, *SYMBOLS, *COMPUTE, *TORCH]
