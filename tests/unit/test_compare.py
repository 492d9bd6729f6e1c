"""What is different between two packages, and whether an extension notices."""

import pytest
from tests.shapes import METADATA, WHEEL, library, package, text

from torchyard.checks.compare import Extension, Moved, Rewritten, Sizes, compare_packages, will_load
from torchyard.checks.expected import Expected
from torchyard.package.contents import (
    Binary,
    Contents,
    DeviceCode,
    PackageFile,
    VersionNeed,
    is_library,
)

NEXT = WHEEL.replace("2.13.0", "2.14.0")


def binary_of(file: PackageFile) -> Binary:
    assert file.binary is not None
    return file.binary


def extension(
    file: PackageFile | None = None, name: str = "ops.so", *, python: str = "", abi: str = ""
) -> Extension:
    made = file or library(name, "libc10.so", imports=["c10_error", "malloc"])
    expected = Expected(python=python, abi=abi)
    return Extension("ops.whl", {made.name: binary_of(made)}, expected)


def torch(*exports: str, **more: tuple[str, ...]) -> Contents:
    return package(library("torch/lib/libc10.so", exports=exports, **more))  # type: ignore[arg-type]


def test_a_package_is_equal_to_itself() -> None:
    one = package(library("torch/lib/libc10.so", exports=["a"]), text("torch/__init__.py"))
    comparison = compare_packages(one, one)
    assert comparison.is_equal
    assert comparison.same == 3
    assert not comparison.libraries
    assert not comparison.metadata


def test_members_and_sizes() -> None:
    old = package(text("torch/a.py", 100), text("torch/b.py", 200), text("torch/c.py"))
    new = package(text("torch/b.py", 260, "other"), text("torch/c.py"), text("torch/d.py", 7))
    comparison = compare_packages(old, new)
    assert comparison.removed == {"torch/a.py": 100}
    assert comparison.added == {"torch/d.py": 7}
    assert comparison.changed == {"torch/b.py": Sizes(200, 260)}
    assert comparison.same == 2
    assert not comparison.is_equal


def test_versions_and_pythons_in_names_are_no_difference() -> None:
    module = "torch/_C.cpython-{}-x86_64-linux-gnu.so"
    old = package(library(module.format("312"), digest="same"))
    new = package(library(module.format("313t"), digest="same"), name=NEXT)
    comparison = compare_packages(old, new)
    assert comparison.is_equal
    assert comparison.same == 2


def test_a_wheel_and_a_zip_are_compared_by_what_is_below_their_roots() -> None:
    wheel = package(library("torch/lib/libc10.so", digest="1"), text("torch/__init__.py"))
    archive = package(
        library("libtorch/lib/libc10.so", digest="2"),
        text("libtorch/build-version"),
        name="libtorch-2.13.0.zip",
        kind="zip",
    )
    comparison = compare_packages(archive, wheel)
    assert list(comparison.changed) == ["torch/lib/libc10.so"]
    assert list(comparison.removed) == ["libtorch/build-version"]
    assert "torch/__init__.py" in comparison.added


def test_a_wheel_and_a_conda_package_are_compared_below_site_packages() -> None:
    wheel = package(text("torch/__init__.py", digest="1"), library("torch/lib/libc10.so"))
    conda = package(
        text("lib/python3.12/site-packages/torch/__init__.py", digest="1"),
        text("lib/python3.12/site-packages/torch-0.dist-info/METADATA", digest=METADATA.decode()),
        library("lib/libc10.so"),
        name="pytorch-2.13.0-h1_0.conda",
        kind="conda",
    )
    assert compare_packages(wheel, conda).same == 3


def test_what_changes_inside_a_library() -> None:
    old = library(
        "torch/lib/libc10.so",
        "libm.so.6",
        "libc.so.6",
        exports=["gone", "kept"],
        needs=(VersionNeed("libc.so.6", "GLIBC_2.17"),),
        device=(DeviceCode("cubin", "sm_80", 3, 300), DeviceCode("cubin", "sm_90", 3, 500)),
        size=1000,
        digest="1",
    )
    new = library(
        "torch/lib/libc10.so",
        "libc.so.6",
        exports=["kept", "new"],
        needs=(VersionNeed("libc.so.6", "GLIBC_2.34"),),
        device=(DeviceCode("cubin", "sm_90", 3, 500), DeviceCode("cubin", "sm_100", 3, 800)),
        size=1400,
        runpath="$ORIGIN/lib",
        digest="2",
    )
    comparison = compare_packages(package(old), package(new))
    (change,) = comparison.libraries
    assert change.size == Sizes(1000, 1400)
    assert change.sections == {".text": Sizes(500, 700)}
    assert change.exports == Moved(("gone",), ("new",))
    assert change.needed == Moved(("libm.so.6",), ())
    assert change.needs == Moved(("GLIBC_2.17 of libc.so.6",), ("GLIBC_2.34 of libc.so.6",))
    assert change.texts == (Rewritten("runpath", "$ORIGIN", "$ORIGIN/lib"),)
    assert comparison.device == {"sm_80": Sizes(300, 0), "sm_100": Sizes(0, 800)}
    assert change.device == comparison.device


def test_metadata_fields_are_compared_one_by_one() -> None:
    old = package(metadata=METADATA + b"Requires-Dist: sympy\nRequires-Dist: numpy\n")
    new = package(metadata=METADATA + b"requires-dist: sympy\n")
    assert compare_packages(old, new).metadata == (
        Rewritten("requires-dist", "sympy\nnumpy", "sympy"),
    )


def test_an_extension_loads_where_all_that_it_uses_is_there() -> None:
    answer = will_load(extension(), torch("c10_error", "unused"), torch("c10_error", "new"))
    assert answer.loads
    assert answer.uses == 1


def test_an_extension_minds_a_symbol_that_it_uses() -> None:
    answer = will_load(extension(), torch("c10_error", "unused"), torch("c10_warning"))
    assert not answer.loads
    assert answer.symbols == ("c10_error",)
    assert not answer.reasons


def test_a_symbol_may_move_to_another_library() -> None:
    moved = library("torch/lib/libb.so", exports=["c10_error"])
    after = package(library("torch/lib/libc10.so", "libb.so"), moved)
    assert will_load(extension(), torch("c10_error"), after).loads
    apart = package(library("torch/lib/libc10.so"), moved)
    assert will_load(extension(), torch("c10_error"), apart).symbols == ("c10_error",)


def test_libraries_that_an_extension_is_not_linked_with_give_it_nothing() -> None:
    find = "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE12find_last_ofEPKcmm"
    before = package(library("numpy/fft/_umath.so", exports=[find, "helper"]))
    wants = extension(library("ops.so", "libstdc++.so.6", imports=[find, "helper"]))
    answer = will_load(wants, before, torch())
    assert answer.loads
    assert (answer.uses, answer.linked, answer.binaries) == (0, (), 1)


def test_what_the_cxx_library_has_is_not_the_packages() -> None:
    runtime = [
        "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE12find_last_ofEPKcmm",
        "_ZNSs4_Rep20_S_empty_rep_storageE",
        "_ZTVN10__cxxabiv117__class_type_infoE",
        "_ZSt4cout",
        "_Znwm",
        "__cxa_throw",
        "__gxx_personality_v0",
    ]
    own = ["_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_", "_ZN3c105ErrorC1ESt6vector"]
    wants = extension(
        library("ops.so", "libc10.so", "libstdc++.so.6", imports=[*runtime, *own, "read"])
    )
    answer = will_load(wants, torch(*runtime, *own, "read"), torch())
    assert answer.symbols == (*sorted(own), "read")
    alone = extension(library("ops.so", "libc10.so", imports=runtime))
    assert will_load(alone, torch(*runtime), torch()).uses == len(runtime)


def test_a_library_of_the_extension_leads_on_to_the_package() -> None:
    own = library("ops/libown.so", "libc10.so")
    module = library("ops/_C.so", "libown.so", imports=["c10_error"])
    both = {file.name: binary_of(file) for file in (own, module)}
    answer = will_load(Extension("ops.whl", both), torch("c10_error"), torch())
    assert answer.symbols == ("c10_error",)


def test_what_an_extension_brings_along_is_not_the_packages() -> None:
    own = library("ops.libs/libc10.so", exports=["c10_error"])
    module = library("ops/_C.so", "libc10.so", imports=["c10_error"])
    both = {file.name: binary_of(file) for file in (own, module)}
    answer = will_load(Extension("ops.whl", both), torch("c10_error"), package())
    assert answer.loads
    assert answer.linked == ()


def test_what_linkers_make_is_no_difference() -> None:
    old = library("torch/lib/libc10.so", exports=["_init", "_fini", "gone"], digest="1")
    new = library("torch/lib/libc10.so", exports=["_edata"], digest="2")
    (change,) = compare_packages(package(old), package(new)).libraries
    assert change.exports == Moved(("gone",), ())


def test_what_programs_export_is_not_for_extensions() -> None:
    copy = library("torch/bin/test", exports=["malloc"])
    before = package(library("torch/lib/libc10.so", exports=["c10_error"]), copy)
    answer = will_load(extension(), before, torch("c10_error"))
    assert answer.loads
    assert answer.uses == 1


def test_names_on_macos_are_paths() -> None:
    wants = extension(library("ops.so", "@rpath/libc10.dylib"))
    before = package(library("torch/lib/libc10.dylib"))
    assert will_load(wants, before, before).loads
    assert will_load(wants, before, torch()).reasons == (
        "it needs libc10.dylib, which is no longer there",
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch/lib/libc10.so", True),
        ("lib/libgomp-a34b.so.1.0.0", True),
        ("torch/_C.cp312-win_amd64.pyd", True),
        ("c10.dll", True),
        ("libc10.dylib", True),
        ("torch/bin/protoc-3.13.0.0", False),
        ("some.software-1.0.whl", False),
        ("a.so/protoc", False),
    ],
)
def test_libraries_are_known_by_their_names(name: str, expected: bool) -> None:
    assert is_library(name) == expected


def test_an_extension_minds_a_library_that_is_gone() -> None:
    after = package(library("torch/lib/libcore.so", exports=["c10_error"]))
    answer = will_load(extension(), torch("c10_error"), after)
    assert answer.reasons == ("it needs libc10.so, which is no longer there",)


def test_an_extension_minds_a_version_that_is_gone() -> None:
    needs = (VersionNeed("libc10.so", "C10_1"), VersionNeed("libc.so.6", "GLIBC_2.17"))
    wants = extension(library("ops.so", "libc10.so", needs=needs))
    before, after = torch(defines=("C10_1",)), torch(defines=("C10_2",))
    assert will_load(wants, before, before).loads
    answer = will_load(wants, before, after)
    assert answer.reasons == ("it needs C10_1 of libc10.so, which no longer defines it",)


@pytest.mark.parametrize(
    ("wants", "reason"),
    [
        (extension(name="ops.cpython-312-x86_64-linux-gnu.so"), ""),
        (
            extension(name="ops.cpython-311-x86_64-linux-gnu.so"),
            "ops.cpython-311-x86_64-linux-gnu.so is for Python 3.11, the package for 3.12",
        ),
        (
            extension(name="ops.cp313t-win_amd64.pyd"),
            "ops.cp313t-win_amd64.pyd is for Python 3.13t, the package for 3.12",
        ),
        (extension(name="ops.abi3.so", python="cp310", abi="abi3"), ""),
        (
            extension(name="ops.abi3.so", python="cp313", abi="abi3"),
            "it is for Python 3.13 and later, the package for 3.12",
        ),
        (
            extension(library("ops.so", machine="aarch64")),
            "ops.so is for aarch64, the package for x86_64",
        ),
    ],
)
def test_an_extension_is_for_a_python_and_a_machine(wants: Extension, reason: str) -> None:
    one = torch("c10_error")
    answer = will_load(wants, one, one)
    assert answer.loads == (not reason)
    assert answer.reasons == ((reason,) if reason else ())
