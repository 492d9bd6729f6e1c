"""What is different between two packages."""

import json

import pytest
from tests.support.contents import CONDA_NAME, contents
from tests.support.shapes import METADATA, WHEEL, library, package, text

from torchyard.checks.compare import Moved, Rewritten, Sizes, compare_packages
from torchyard.package.conda.index import INDEX
from torchyard.package.contents import (
    DeviceCode,
    VersionNeed,
    is_library,
)

NEXT = WHEEL.replace("2.13.0", "2.14.0")


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


def test_all_fields_of_conda_packages_are_compared() -> None:
    old, new = (
        contents(
            CONDA_NAME,
            "conda",
            {
                INDEX: json.dumps(
                    {"name": "tiny", "build_number": number, "constrains": [other]}
                ).encode(),
                "info/about.json": json.dumps({"license": license_}).encode(),
                "info/run_exports.json": json.dumps({"weak": [f"tiny >=1.{number}"]}).encode(),
            },
        )
        for number, other, license_ in ((0, "a <1", "MIT"), (1, "b <2", "BSD-3-Clause"))
    )
    assert compare_packages(old, new).metadata == (
        Rewritten("build_number", "0", "1"),
        Rewritten("constrains", "a <1", "b <2"),
        Rewritten("about.license", "MIT", "BSD-3-Clause"),
        Rewritten("run_exports.weak", "tiny >=1.0", "tiny >=1.1"),
    )


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


def test_what_linkers_make_is_no_difference() -> None:
    old = library("torch/lib/libc10.so", exports=["_init", "_fini", "gone"], digest="1")
    new = library("torch/lib/libc10.so", exports=["_edata"], digest="2")
    (change,) = compare_packages(package(old), package(new)).libraries
    assert change.exports == Moved(("gone",), ())


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
