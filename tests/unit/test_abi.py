"""The ABI class of an extension: what it needs of Python and torch, and which builds would do."""

import msgspec
import pytest
from tests.mutations.good import job_for
from tests.support.made import EXPECTED, hits, library, package, subject_of

from torchyard.checks.compat.abi import ApiUse, MeasuredAbi, abi_of, abi_words, measure_abi
from torchyard.checks.compat.extension import ExtensionLibrary, ExtensionWheel
from torchyard.checks.compat.fold import fold_wheels
from torchyard.checks.compat.stable_names import torch_releases, torch_shims
from torchyard.checks.compat.table import load_compat_table
from torchyard.checks.subject import Subject
from torchyard.model.abi import AbiClass
from torchyard.package.contents import Contents
from torchyard.package.wheel.name import WheelName

ADD = "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_"
WINDOWS_ADD = "?call@add_Tensor@_ops@at@@SA?AVTensor@3@AEBV43@0@Z"
LIMITED = "PyModule_Create2"
FULL = "PyUnicode_AsUTF8"
METACLASS = "PyType_FromMetaclass"
OLD_SHIM, SHIM, NEW_SHIM = "aoti_torch_clone", "torch_library_impl", "torch_from_blob"


def measured(*imports: str, name: str = "_C.so", is_abi3: bool = False) -> MeasuredAbi:
    return measure_abi({f"demo/{name}": library(imports=imports)}, is_abi3=is_abi3)


# ------------------------------------------------------------------------------- classes


@pytest.mark.parametrize(
    ("imports", "name", "words"),
    [
        ([FULL, ADD], "_C.so", "full: one Python, no stable torch"),
        ([LIMITED, ADD], "_C.abi3.so", "abi3: Python 3.2 or newer, no stable torch"),
        ([LIMITED, METACLASS, ADD], "_C.abi3.so", "abi3: Python 3.12 or newer, no stable torch"),
        ([FULL, SHIM], "_C.so", "stable: one Python, torch 2.10 or newer"),
        ([LIMITED, SHIM], "_C.abi3.so", "both: Python 3.2 or newer, torch 2.10 or newer"),
        ([OLD_SHIM, SHIM], "_C.so", "both: any Python, torch 2.10 or newer"),
        (["malloc"], "_C.so", "both: any Python, any torch"),
        ([OLD_SHIM], "_C.so", "both: any Python, torch 2.6 or newer"),
        ([SHIM, NEW_SHIM], "_C.so", "both: any Python, torch 2.11 or newer"),
        ([SHIM, ADD], "_C.so", "abi3: any Python, no stable torch"),
        ([FULL, WINDOWS_ADD], "_C.pyd", "full: one Python, no stable torch"),
    ],
)
def test_classes(imports: list[str], name: str, words: str) -> None:
    assert abi_words(measured(*imports, name=name)) == words


def test_functions_of_python_are_stable_only_where_that_is_said() -> None:
    """Macros leave no symbols, so a module that does not say abi3 may use what is not stable."""
    assert measured(LIMITED).python.use is ApiUse.FULL
    assert measured(LIMITED, is_abi3=True).python.use is ApiUse.STABLE
    assert measured(LIMITED, name="_C.abi3.so").python.use is ApiUse.STABLE
    assert measured(LIMITED, FULL, is_abi3=True).python.use is ApiUse.FULL


def test_what_decides_is_named() -> None:
    assert (measured(SHIM, OLD_SHIM).torch.symbol, measured(SHIM, ADD).torch.symbol) == (SHIM, ADD)
    assert measured(SHIM, ADD).torch.member == "demo/_C.so"


def test_a_function_that_no_known_torch_has() -> None:
    newest = ".".join(map(str, torch_releases()[-1]))
    found = measured(SHIM, "torch_of_the_future")
    assert (found.name, found.torch.floor) == (AbiClass.BOTH, None)
    assert abi_words(found).endswith(f"torch after {newest}")


def test_what_a_library_of_the_wheel_defines_is_its_own() -> None:
    binaries = {
        "demo/_C.so": library(imports=[ADD, FULL, SHIM]),
        "demo/libdemo.so": library(exports=[ADD, FULL]),
    }
    assert measure_abi(binaries, is_abi3=False).name is AbiClass.BOTH


def test_weak_symbols_do_not_count() -> None:
    binary = msgspec.structs.replace(library(imports=[ADD]), weak=f"{ADD}\0".encode())
    assert measure_abi({"_C.so": binary}, is_abi3=False).torch.use is ApiUse.NONE


def test_torch_itself_is_no_extension() -> None:
    torch = package({"torch/lib/libtorch_cpu.so": library(imports=[ADD])})
    assert abi_of(subject_of(torch, EXPECTED)) is None
    plain = package({"thing/_C.so": library(imports=[FULL])})
    assert abi_of(subject_of(plain, EXPECTED)) is None


def test_the_table_of_torchs_functions() -> None:
    shims = torch_shims()
    assert (shims[OLD_SHIM], shims[SHIM], shims[NEW_SHIM]) == ((2, 6), (2, 10), (2, 11))
    assert len(shims) > 500
    assert all(map(load_compat_table().is_shim, shims))


# ---------------------------------------------------------------------------------- fold


def wheel(
    file: str, *imports: str, needed: tuple[str, ...] = (), name: str = "_C.so"
) -> ExtensionWheel:
    return ExtensionWheel(
        name=WheelName.parse(f"demo-{file}.whl"),
        libraries=(ExtensionLibrary(member=name, needed=needed, undefined=()),),
        requires_torch=None,
        abi=measured(*imports, name=name),
    )


LINUX, ARM, MAC = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64"


@pytest.mark.parametrize(
    ("imports", "name", "builds"),
    [
        ([FULL, ADD], "_C.so", 16),
        ([LIMITED, ADD], "_C.abi3.so", 4),
        ([FULL, SHIM], "_C.so", 8),
        ([LIMITED, SHIM], "_C.abi3.so", 2),
        ([SHIM], "_C.so", 2),
    ],
)
def test_the_fold_of_a_matrix(imports: list[str], name: str, builds: int) -> None:
    """Four Pythons, two torches, two platforms."""
    wheels = [
        wheel(f"1.0+pt{torch}-{python}-{python}-{platform}", *imports, name=name)
        for python in ("cp310", "cp311", "cp312", "cp313")
        for torch in ("213", "214")
        for platform in (LINUX, ARM)
    ]
    folded = fold_wheels(wheels)
    assert len(folded) == builds
    assert sorted(map(str, (one.name for group in folded.values() for one in group))) == sorted(
        map(str, (one.name for one in wheels))
    )


def test_what_is_not_folded() -> None:
    """Versions, projects and majors of CUDA; a newer macOS is."""
    wheels = [
        wheel(f"1.0-cp311-cp311-{MAC}", SHIM),
        wheel("1.0-cp313-cp313-macosx_12_0_arm64", SHIM),
        wheel(f"1.1-cp311-cp311-{MAC}", SHIM),
        wheel(f"1.1-cp311-cp311-{LINUX}", SHIM, needed=("libcudart.so.12",)),
        wheel(f"1.1-cp311-cp311-{LINUX}", SHIM, needed=("libcudart.so.13",)),
    ]
    assert sorted(map(len, fold_wheels(wheels).values())) == [1, 1, 1, 2]


# --------------------------------------------------------------------------------- rules


def extension(
    *imports: str, requires: tuple[str, ...] = ("torch>=2.10",), needed: tuple[str, ...] = ()
) -> Contents:
    return package({"thing/_C.so": library(*needed, imports=imports)}, requires=requires)


def subject(contents: Contents, *others: Contents, version: str = "1.0") -> Subject:
    expected = msgspec.structs.replace(EXPECTED, version=version)
    return subject_of(contents, expected, others=others)


@pytest.mark.parametrize(
    ("requires", "admitted"),
    [
        ("torch>=2.11", ""),
        ("torch==2.12.*", ""),
        ("torch>=2.10", "2.10"),
        ("torch>2.10.0", "2.10"),
        ("torch<2.12", "2.6"),
        ("torch", "2.6"),
        ("numpy", "2.6"),
    ],
)
def test_torch_floor(requires: str, admitted: str) -> None:
    found = hits("torch-floor", subject(extension(SHIM, NEW_SHIM, requires=(requires,))))
    assert bool(found) == bool(admitted)
    for hit in found:
        assert hit.what.startswith(f"uses `{NEW_SHIM}`, which torch has since 2.11")
        assert hit.what.endswith(f"admits {admitted}")
        assert "torch>=2.11" in hit.hint


@pytest.mark.parametrize(
    ("declared", "imports", "symbols"),
    [
        ("both", [SHIM], []),
        ("both", [SHIM, ADD], [ADD]),
        ("both", [FULL, ADD], [FULL, ADD]),
        ("stable", [FULL, SHIM], []),
        ("stable", [FULL, ADD], [ADD]),
        ("abi3", [FULL, ADD], [FULL]),
        ("full", [FULL, ADD], []),
        ("", [FULL, ADD], []),
        ("strange", [FULL, ADD], []),
    ],
)
def test_label_abi(declared: str, imports: list[str], symbols: list[str]) -> None:
    made = subject(extension(*imports))
    made.spec = job_for(
        "thing-1.0/linux-x86_64/cpu-torch2.13/cp312/wheel", {"abi": declared, "label": "cpu"}
    )
    found = [hit.what for hit in hits("label-abi", made)]
    assert found == [
        f"uses `{symbol}`, which is not stable, but the file says abi = {declared}"
        for symbol in symbols
    ]


def test_torch_floor_is_that_of_stable_functions_only() -> None:
    assert not hits("torch-floor", subject(extension(NEW_SHIM, ADD)))


@pytest.mark.parametrize(
    ("requires", "library_name", "wrong"),
    [
        ("torch>=2.10", "libcudart.so.12", "2.11 to 2.15"),
        ("torch==2.11.*", "libcudart.so.12", "2.11"),
        ("torch==2.10.*", "libcudart.so.12", ""),
        ("torch>=2.11", "libcudart.so.13", ""),
        ("torch>=2.9", "libcudart.so.13", "2.9 to 2.10"),
        ("torch>=2.9", "libfoo.so.12", ""),
        ("numpy", "libcudart.so.12", ""),
    ],
)
def test_torch_toolkit(requires: str, library_name: str, wrong: str) -> None:
    contents = extension(ADD, requires=(requires,), needed=(library_name,))
    found = hits("torch-toolkit", subject(contents))
    assert [f"exclude torch {wrong}," in hit.hint for hit in found] == ([True] if wrong else [])


def test_a_label_says_for_which_torch_it_is() -> None:
    contents = extension(ADD, needed=("libcudart.so.12",))
    assert not hits("torch-toolkit", subject(contents, version="1.0+cu126"))
    assert hits("torch-toolkit", subject(contents, version="1.0+old"))


def test_the_torch_that_is_checked_together() -> None:
    contents = extension(ADD, requires=("torch>=2.11",), needed=("libcudart.so.13",))
    files = {"torch/lib/libtorch_cuda.so": library("libcudart.so.12")}
    torch = package(files, name="torch-2.14.0-cp312-cp312-manylinux_2_28_x86_64.whl")
    [hit] = hits("torch-toolkit", subject(contents, torch))
    assert hit.what == "needs CUDA 13, but the torch beside it brings CUDA 12"


def test_torch_vendored() -> None:
    copy, other = library(exports=["_ZN3c104nameEv"]), library(exports=["name"])
    files = {
        "thing/_C.so": library("libc10.so", imports=[ADD]),
        "thing.libs/libtorch_cpu-0123abcd.so": copy,
        "thing.libs/libtorch_own.so": other,
    }
    [hit] = hits("torch-vendored", subject(package(files, requires=["torch"])))
    assert (hit.member, hit.what) == (
        "thing.libs/libtorch_cpu-0123abcd.so",
        "is a copy of torch's `libtorch_cpu.so`",
    )
    assert not hits("torch-vendored", subject(package(files)))
