"""Faults planted in wheels: `torchyard check` or `torchyard compat` finds each, by name.

One row is one fault. The sound wheels below are what is close to a fault and is none.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.helpers import Command
from tests.support.made_elf import Made, make_elf
from tests.unit.test_broken_extensions import (
    ABI3_MODULE,
    ABI3_TAG,
    ADD,
    CREATE,
    GONE,
    MODULE,
    OLD_STRING,
    SHIM,
    TORCH,
    Extension,
    for_arm,
    having,
    module,
)

from torchyard.checks.compat.symbol_cache import save_symbols_file
from torchyard.checks.torch_symbols import TorchSymbols, packed_digests, symbol_digest
from torchyard.host.cache import cache_folder
from torchyard.workspace import torch_releases

TABLE = "_ZN7fastops10fast_tableEi"
LINUX = "manylinux_2_28_x86_64"
CORE = "demo_core/libdemo_core.so"
BESIDE_RPATH = "$ORIGIN:$ORIGIN/../demo_core:$ORIGIN/../nvidia/cu13/lib"
PLAIN_MODULE = "demo/_plain.cpython-312-x86_64-linux-gnu.so"


class Beside(NamedTuple):
    """A wheel that is checked together with the broken one."""

    name: str
    members: dict[str, bytes]
    version: str = "1.0"

    def write(self, folder: Path) -> Path:
        made = Extension(version=self.version, members=self.members, requires=()).write(folder)
        path = made.with_name(made.name.replace("demo", self.name))
        return made.rename(path)


def library(*exports: str, needed: Sequence[str] = (), imports: Sequence[str] = ()) -> bytes:
    """A library that Python can't import."""
    return module(*imports, needed=needed, exports=exports)


def plain(*imports: str, needed: Sequence[str] = ("libc.so.6",)) -> Extension:
    """A wheel whose module has nothing to do with torch."""
    return Extension(members={MODULE: module(CREATE, *imports, needed=needed)}, requires=())


def beside_torch(*exports: str, cuda: bool = True) -> Beside:
    members = {
        "torch/lib/libc10.so": library(),
        "torch/lib/libtorch_cpu.so": library(*exports, needed=["libc10.so"]),
    }
    if cuda:
        members["torch/lib/libc10_cuda.so"] = library(needed=["libcudart.so.13"])
    return Beside("torch", members, "2.13.0")


def with_core(*imports: str, needed: Sequence[str] = ("libdemo_core.so",)) -> Extension:
    """A wheel that uses a library of `demo-core`."""
    content = module(CREATE, *imports, needed=needed, runpath=BESIDE_RPATH)
    return Extension(members={MODULE: content}, requires=["demo-core"])


def with_cudart(*imports: str) -> Extension:
    content = module(CREATE, *imports, needed=["libcudart.so.13"], runpath=BESIDE_RPATH)
    return Extension(members={MODULE: content}, requires=["nvidia-cuda-runtime"])


def core(*exports: str) -> Beside:
    return Beside("demo_core", {CORE: library(*exports)})


CUDART = Beside("nvidia_cuda_runtime", {"nvidia/cu13/lib/libcudart.so.13": library("cudaMalloc")})
FOR_CPU = Extension(version="1.0+cpu")


class Planted(NamedTuple):
    """A fault: the rule that finds it, and the name that it must tell."""

    kind: str
    extension: Extension
    rule: str
    told: str
    beside: tuple[Beside, ...] = ()


UNDEFINED = "symbols-undefined"

PLANTED = [
    # The package's own symbols, which it was to define.
    Planted("own: a C++ function", plain(TABLE), UNDEFINED, TABLE),
    Planted("own: a C++ function, beside torch's", having(TABLE), UNDEFINED, TABLE),
    Planted("own: a C function", plain("fast_table"), UNDEFINED, "fast_table"),
    Planted("own: a C function, beside torch's", having("fast_table"), UNDEFINED, "fast_table"),
    Planted("own: a Fortran routine", plain("fast_table_"), UNDEFINED, "fast_table_"),
    Planted("own: a global C++ function", having("_Z9fastTablei"), UNDEFINED, "_Z9fastTablei"),
    Planted("own: a method", having("_ZNK7fastops5Table4sizeEv"), UNDEFINED, "4sizeEv"),
    Planted("own: a virtual table", having("_ZTVN7fastops5TableE"), UNDEFINED, "_ZTVN7fastops"),
    Planted("own: a type", having("_ZTIN7fastops5TableE"), UNDEFINED, "_ZTIN7fastops"),
    Planted("own: a variable", having("_ZN7fastops5Table5countE"), UNDEFINED, "5countE"),
    Planted(
        "own: in a namespace like torch's",
        having("_ZN11torch_table4fillEv"),
        UNDEFINED,
        "torch_table",
    ),
    Planted(
        "own: in the stable ABI",
        Extension(tag=ABI3_TAG, members={ABI3_MODULE: module(SHIM, CREATE, TABLE)}),
        UNDEFINED,
        TABLE,
    ),
    Planted(
        "own: of a library that a module loads",
        Extension(
            members={
                MODULE: module(CREATE, needed=["libfast.so"]),
                "demo/libfast.so": library(imports=[TABLE]),
            },
            requires=(),
        ),
        UNDEFINED,
        TABLE,
    ),
    Planted(
        "own: of operators that are no module",
        Extension(members={"demo/libfast.so": library(imports=[ADD, TABLE], needed=TORCH)}),
        UNDEFINED,
        TABLE,
    ),
    Planted(
        "own: of one module of two",
        Extension(members={MODULE: module(ADD, CREATE), PLAIN_MODULE: module(ADD, TABLE)}),
        UNDEFINED,
        TABLE,
    ),
    Planted(
        "own: with CUDA",
        having("_ZN7fastops6launchEv", needed=["libcudart.so.13"]),
        UNDEFINED,
        "_ZN7fastops6launchEv",
    ),
    Planted(
        "own: a C function with CUDA",
        having("fast_launch", needed=["libcudart.so.13"]),
        UNDEFINED,
        "fast_launch",
    ),
    Planted(
        "own: with zlib", plain("fast_crc", needed=["libz.so.1"]), UNDEFINED, "needs `fast_crc`"
    ),
    # torch's.
    Planted(
        "torch: a C function, and no library of torch is linked",
        Extension(members={MODULE: module(SHIM, CREATE, needed=())}),
        UNDEFINED,
        "linked with none of torch's libraries",
    ),
    Planted(
        "torch: a C++ function, and no library of torch is linked",
        Extension(members={MODULE: module(ADD, CREATE, needed=())}),
        UNDEFINED,
        ADD,
    ),
    Planted(
        "torch: a newer C++ function", having(GONE), "torch-symbols", GONE, (beside_torch(ADD),)
    ),
    Planted(
        "torch: the old std::string",
        having(OLD_STRING),
        "torch-symbols",
        OLD_STRING,
        (beside_torch(ADD),),
    ),
    Planted(
        "torch: a library",
        having(needed=["libtorch_hip.so"]),
        "torch-symbols",
        "libtorch_hip.so",
        (beside_torch(ADD),),
    ),
    Planted(
        "torch: CUDA's part, beside a torch for CPUs",
        having(needed=["libc10_cuda.so"]),
        "torch-symbols",
        "libc10_cuda.so",
        (beside_torch(ADD, cuda=False),),
    ),
    Planted(
        "torch: a newer C function",
        Extension(members={MODULE: module(SHIM, "torch_from_blob")}, requires=["torch>=2.10"]),
        "torch-floor",
        "torch_from_blob",
    ),
    Planted(
        "torch: a class of Python that it has not",
        having("THPNothingClass"),
        UNDEFINED,
        "THPNothingClass",
    ),
    # CUDA's.
    Planted("CUDA: the runtime is not linked", plain("cudaMalloc"), UNDEFINED, "cudaMalloc"),
    Planted("CUDA: NCCL is not linked", plain("ncclCommAbort"), UNDEFINED, "ncclCommAbort"),
    Planted(
        "CUDA: in a wheel for CPUs",
        FOR_CPU._replace(members={MODULE: module(ADD, CREATE, "cudaMalloc")}),
        UNDEFINED,
        "cudaMalloc",
    ),
    Planted(
        "CUDA: BLAS in a wheel for CPUs",
        FOR_CPU._replace(members={MODULE: module(ADD, CREATE, "cublasCreate_v2")}),
        UNDEFINED,
        "cublasCreate_v2",
    ),
    Planted(
        "CUDA: a function that the runtime has not",
        with_cudart("cudaNothing"),
        UNDEFINED,
        "cudaNothing",
        (CUDART,),
    ),
    Planted(
        "CUDA: another version than torch's",
        having(needed=["libcudart.so.12"]),
        "torch-toolkit",
        "CUDA 12",
    ),
    # A sibling's.
    Planted("sibling: lacks it", with_core(TABLE), UNDEFINED, TABLE, (core("other"),)),
    Planted("sibling: a C function", with_core("core_run"), UNDEFINED, "core_run", (core("x"),)),
    Planted(
        "sibling: has it, and is not linked",
        with_core(TABLE, needed=()),
        UNDEFINED,
        TABLE,
        (core(TABLE),),
    ),
    Planted(
        "sibling: a library that it has not",
        with_core(needed=["libdemo_more.so"]),
        "linking-unresolved",
        "libdemo_more.so",
        (core(TABLE),),
    ),
    Planted(
        "sibling: not required",
        with_core(TABLE)._replace(requires=()),
        "linking-undeclared",
        "libdemo_core.so",
        (core(TABLE),),
    ),
    # Labels.
    Planted(
        "label: CUDA in a wheel for CPUs",
        FOR_CPU._replace(members={MODULE: module(ADD, needed=(*TORCH, "libcudart.so.13"))}),
        "label-compute",
        "libcudart.so.13",
    ),
    Planted("label: no CUDA", Extension(version="1.0+cu130"), "label-compute", "cu130"),
    Planted(
        "label: another Python",
        Extension(members={MODULE.replace("312", "311"): module(ADD)}),
        "label-python",
        "cp311",
    ),
    Planted(
        "label: another machine",
        Extension(members={MODULE: for_arm(module(ADD))}),
        "label-platform",
        "aarch64",
    ),
    Planted(
        "label: abi3 without Py_LIMITED_API",
        Extension(tag=ABI3_TAG, members={ABI3_MODULE: module(ADD, "_PyObject_GetState")}),
        "symbols-python",
        "_PyObject_GetState",
    ),
    # What is missing.
    Planted("module: left out", Extension(members={}), "torch-empty", "nothing in the wheel"),
    Planted(
        "module: the library that it loads is left out",
        Extension(members={MODULE: module(CREATE, needed=["libfast.so"])}, requires=()),
        "linking-unresolved",
        "libfast.so",
    ),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.kind)
def test_planted_faults_are_found(torchyard: Command, tmp_path: Path, planted: Planted) -> None:
    path = planted.extension.write(tmp_path)
    beside = [one.write(tmp_path / "beside") for one in planted.beside]
    document = json.loads(torchyard("check", path, *beside, "--json").out)
    found = document["packages"][0]["findings"]
    assert [one for one in found if one["rule"] == planted.rule and planted.told in one["what"]]


def test_there_are_forty() -> None:
    assert len({planted.kind for planted in PLANTED}) == len(PLANTED) >= 40


# ------------------------------------------------------------------------------- sound


class Sound(NamedTuple):
    """A wheel that loads, or of which it is not known."""

    name: str
    extension: Extension
    beside: tuple[Beside, ...] = ()


def weak(*names: str) -> bytes:
    symbols = [(name, 2, 0, 0) for name in names] + [("PyInit__C", 1, 0, 1)]
    return make_elf(Made(symbols=symbols, build_id=b"\x01" * 20))


SOUND = [
    Sound("weak", Extension(members={MODULE: weak(TABLE, ADD)}, requires=())),
    Sound("glibc's, of a library that is not linked", plain("log", "dlopen", "pthread_create")),
    Sound("zlib's", plain("deflate", needed=["libz.so.1"])),
    Sound("Python's", plain("_PyLong_AsByteArray", "PyLong_AsInt")),
    Sound("of the compiler", plain("__popcountdi2", "_Unwind_Resume", "__cxa_throw")),
    Sound("of the C++ library", plain("_ZNSt6localeC1Ev", "_ZTVN10__cxxabiv117__class_type_infoE")),
    Sound("of a system's library", plain("glBegin", needed=["libGL.so.1"])),
    Sound("of code in torch", having("mkl_blas_dgemm", "_ZN6fbgemm9fbgemmInitEv", "sgemm_")),
    Sound("of CUDA, which torch loads", having("cudaMalloc")),
    Sound(
        "of OpenMP, which torch loads, also for CPUs (signatory)",
        having("GOMP_barrier", "omp_get_num_threads")._replace(version="1.0+pt213cpu"),
    ),
    Sound("of a driver", plain("cuInit", needed=["libcuda.so.1"])),
    Sound("of a sibling", with_core(TABLE), (core(TABLE),)),
    Sound("of a sibling that is not at hand", with_core(TABLE)),
    Sound("of CUDA's wheel", with_cudart("cudaMalloc"), (CUDART,)),
    Sound("of torch beside it", having(GONE), (beside_torch(ADD, GONE),)),
    Sound(
        "of a library of the wheel",
        Extension(
            members={
                MODULE: module(CREATE, TABLE, needed=["libfast.so"]),
                "demo/libfast.so": library(TABLE),
            },
            requires=(),
        ),
    ),
    Sound(
        "of the module that opens a plugin",
        Extension(
            members={
                MODULE: module(CREATE, exports=["PyInit__C", TABLE], needed=()),
                "demo/libplugin.so": library(imports=[TABLE]),
            },
            requires=(),
        ),
    ),
    Sound(
        "of another program, which loads the library",
        Extension(members={"demo/libvpi.so": library(imports=["vpi_get"])}, requires=()),
    ),
    Sound(
        "of musl",
        plain("fast_musl", needed=["libc.musl-x86_64.so.1"])._replace(
            tag="cp312-cp312-musllinux_1_2_x86_64"
        ),
    ),
]


@pytest.mark.parametrize("sound", SOUND, ids=lambda sound: sound.name)
def test_sound_wheels_pass(torchyard: Command, tmp_path: Path, sound: Sound) -> None:
    path = sound.extension.write(tmp_path)
    beside = [one.write(tmp_path / "beside") for one in sound.beside]
    rules = ("--rule", "symbols-undefined", "--rule", "torch-symbols", "--json")
    document = json.loads(torchyard("check", path, *beside, *rules).out)
    assert document["packages"][0]["findings"] == []


def test_what_is_not_decided_is_said(keep: Command, tmp_path: Path) -> None:
    path = having(GONE)._replace(requires=["torch==2.15.*"]).write(tmp_path)
    done = keep("check", path)
    assert done.code == 0
    assert "not decided: 2 of torch; `torchyard compat` compares torch's" in done.out
    document = json.loads(keep("check", with_core(TABLE).write(tmp_path), "--json").out)
    assert document["packages"][0]["undecided"] == {"libdemo_core.so": 1}
    decided = having(GONE)._replace(requires=["torch==2.13.*"]).write(tmp_path)
    assert json.loads(keep("check", decided, "--json").out)["packages"][0]["undecided"] == {}


def test_a_library_for_each_torch_is_enough(keep: Command, tmp_path: Path) -> None:
    """As dgl has them: it loads the one of the torch that is there."""
    members = {
        "demo/libdemo_2.13.so": library(imports=[GONE], needed=TORCH),
        "demo/libdemo_2.14.so": library(imports=[ADD], needed=TORCH),
    }
    path = Extension(members=members).write(tmp_path)
    assert keep("check", path, "--rule", "torch-symbols").code == 0


def test_a_missing_library_is_told_once(torchyard: Command, tmp_path: Path) -> None:
    """What it would have defined is not known."""
    path = plain(TABLE, needed=["libunheard.so.1"]).write(tmp_path)
    found = json.loads(torchyard("check", path, "--json").out)["packages"][0]["findings"]
    assert [one["rule"] for one in found] == ["linking-unresolved"]


# ------------------------------------------------------------------ the commands agree


KEPT_TORCHES = torch_releases.kept_torches


@pytest.fixture
def keep(torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Keep the symbols of two releases, as `torchyard compat` does; the newer one lacks one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torch_releases, "kept_torches", KEPT_TORCHES)
    folder = cache_folder("symbols")
    assert folder is not None
    for version, names in (("2.13.0", [ADD, GONE]), ("2.14.1", [ADD]), ("2.14.1+cpu", [])):
        file = f"torch-{version}-cp312-cp312-{LINUX}.whl"
        digests = packed_digests(symbol_digest(name.encode()) for name in names)
        symbols = TorchSymbols(
            file=file, version=version, libraries=TORCH, toolkits=(), digests=digests
        )
        save_symbols_file(folder / file, symbols)
    return torchyard


def test_check_knows_the_torch_that_compat_has_read(keep: Command, tmp_path: Path) -> None:
    path = having(GONE).write(tmp_path)
    done = keep("check", path)
    assert done.code == 13
    text = " ".join(done.out.split())
    assert "error torch-symbols" in text
    assert "needs `c10::core::oldThing()` of torch, which torch 2.14.1 lacks" in text
    refused = keep("publish", path, "--to", tmp_path / "c", "--external", "torch")
    assert (refused.code, "c10::core::oldThing()" in refused.err) == (15, True)


@pytest.mark.parametrize(
    "extension",
    [
        having(),
        having(GONE)._replace(requires=["torch==2.13.*"]),
        having(GONE)._replace(requires=["torch==2.15.*"]),
        having(GONE)._replace(
            tag=f"cp313-cp313-{LINUX}",
            members={MODULE.replace("312", "313"): module(ADD, GONE, CREATE)},
        ),
        Extension(version="1.0+cu130", members={MODULE: module(GONE)}),
    ],
    ids=["loads", "not admitted", "no such table", "another Python", "another compute"],
)
def test_other_torches_are_not_its_own(keep: Command, tmp_path: Path, extension: Extension) -> None:
    done = keep("check", extension.write(tmp_path), "--rule", "torch-symbols")
    assert done.code == 0, done.out


@pytest.mark.parametrize("name", ["demo.whl", "demo-x-y.whl", f"demo-x-cp312-cp312-{LINUX}.whl"])
def test_a_wheel_with_another_name_is_checked_as_well(
    keep: Command, tmp_path: Path, name: str
) -> None:
    torch = beside_torch(ADD).write(tmp_path)
    unnamed = torch.rename(tmp_path / f"torch{name.removeprefix('demo')}")
    broken = having(TABLE, needed=["libcudart.so.12"])
    for path in (broken._replace(renamed=name), broken):
        document = json.loads(keep("check", path.write(tmp_path), unnamed, "--json").out)
        assert "symbols-undefined" in {one["rule"] for one in document["packages"][0]["findings"]}


def test_publish_refuses_what_nothing_defines(torchyard: Command, tmp_path: Path) -> None:
    path = having(TABLE).write(tmp_path)
    done = torchyard("publish", path, "--to", tmp_path / "c", "--external", "torch")
    assert done.code == 15
    assert "needs `fastops::fast_table(int)`, and nothing that it loads defines it" in done.err
    assert not list((tmp_path / "c").rglob("*.whl"))


def test_alternatives_are_one_for_check_as_for_compat(torchyard: Command, tmp_path: Path) -> None:
    """As bitsandbytes has them: `compat` says that its metadata agree."""
    members = {
        f"demo/libdemo_cuda{number}.so": library(needed=[f"libcudart.so.{number // 10}"])
        for number in (118, 124, 130)
    }
    path = Extension(members=members, requires=["torch>=2.6"]).write(tmp_path)
    assert torchyard("check", path, "--rule", "torch-toolkit").code == 0
    path = Extension(members=members, requires=["torch>=2.0,<2.1"]).write(tmp_path / "old")
    assert torchyard("check", path, "--rule", "torch-toolkit").code == 0


def test_what_torch_brings_is_not_missing(torchyard: Command, tmp_path: Path) -> None:
    """As torchaudio needs it: it loads beside torch, which it does not require."""
    path = having(needed=["libcudart.so.13"])._replace(requires=()).write(tmp_path)
    found = json.loads(torchyard("check", path, "--json").out)["packages"][0]["findings"]
    assert {one["rule"] for one in found} == {"linking-undeclared"}
    assert any("`libcudart.so.13` of `torch`" in one["what"] for one in found)
