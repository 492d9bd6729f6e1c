import msgspec
import pytest
from tests.support.contents import INDEX
from tests.support.made import hits, library, package, subject_of

from torchyard.checks.loader.companions import (
    distribution_of,
    is_vendors,
    requirements_by_name,
    siblings_of,
)
from torchyard.package.contents import Binary, Contents

CUBLAS = "nvidia_cublas-13.0.0-py3-none-manylinux_2_27_x86_64.whl"
FILES: dict[str, Binary | str] = {
    "thing/liba.so": library("libcublas.so.13", rpath="$ORIGIN/../nvidia/cu13/lib")
}


def test_requirements_are_those_of_the_place_where_a_package_is_installed() -> None:
    contents = package(
        {},
        requires=[
            "Numpy>=1.0",
            'triton; platform_system == "Linux"',
            'colorama; sys_platform == "win32"',
            'extras; extra == "more"',
            'new; python_version < "3.13"',
            'old; python_version < "3.9"',
            'arm; platform_machine == "aarch64"',
            "not a requirement!",
            'strange; python_version ~= "new"',
            'stranger; sys_platform ~= "linux"',
        ],
    )
    assert set(siblings_of(subject_of(contents)).requirements) == {"numpy", "triton", "new"}


def test_extras_of_the_toolkit_stand_for_wheels() -> None:
    contents = package({}, requires=["cuda-toolkit[cublas,nvrtc]==13.0.*"])
    declared = siblings_of(subject_of(contents)).declared
    assert {"cuda-toolkit", "nvidia-cublas", "nvidia-cuda-nvrtc"} <= declared
    assert "nvidia-cufft" not in declared


def test_extras_may_be_in_several_lines_and_are_of_one_toolkit() -> None:
    lines = ["cuda-toolkit[cublas]==12.4.*", "cuda-toolkit[nvtx]==12.4.*"]
    declared = siblings_of(subject_of(package({}, requires=lines))).declared
    assert {"nvidia-cublas-cu12", "nvidia-nvtx-cu12"} <= declared
    assert declared.isdisjoint({"nvidia-cublas", "nvidia-nvtx"})


def test_either_of_two_wheels_with_a_library_will_do() -> None:
    files: dict[str, Binary | str] = {
        "thing/liba.so": library("libnccl.so.2", rpath="$ORIGIN/../nvidia/nccl/lib")
    }
    for name in ("nvidia-nccl-cu12", "nvidia_nccl.cu13"):
        assert not hits("linking-undeclared", subject_of(package(files, requires=[name])))
    [hit] = hits("linking-undeclared", subject_of(package(files)))
    assert "of `nvidia-nccl-cu11 or nvidia-nccl-cu12 or nvidia-nccl-cu13`" in hit.what


def test_a_declared_wheel_helps_only_where_the_rpath_leads() -> None:
    files: dict[str, Binary | str] = {"thing/liba.so": library("libcublas.so.13")}
    contents = package(files, requires=["cuda-toolkit[cublas]"])
    [hit] = hits("linking-unresolved", subject_of(contents))
    assert "`nvidia-cublas` (in nvidia/cu13/lib) would have it" in hit.what


def test_a_folder_can_be_of_a_wheel_whose_name_begins_with_its_own() -> None:
    """As `metatensor` is metatensor-core's; `torch` is not torch-scatter's."""
    for folder, requires, count in (
        ("metatensor", ["metatensor-core"], 0),
        ("metatensor", ["metatensorial"], 1),
        ("torch", ["torch-scatter"], 1),
    ):
        binary = library("libmetatensor.so", rpath=f"$ORIGIN/../{folder}/lib")
        found = hits(
            "linking-unresolved", subject_of(package({"thing/a.so": binary}, requires=requires))
        )
        assert len(found) == count, (folder, requires)


def test_a_wheel_that_is_given_together_decides_by_its_files() -> None:
    contents = package(FILES, requires=["nvidia-cublas"])
    assert not hits("linking-unresolved", subject_of(contents))
    full = package({"nvidia/cu13/lib/libcublas.so.13": library()}, name=CUBLAS)
    assert not hits("linking-unresolved", subject_of(contents, others=[full]))
    empty = package({}, name=CUBLAS)
    assert hits("linking-unresolved", subject_of(contents, others=[empty]))
    [hit] = hits("linking-undeclared", subject_of(package(FILES), others=[full]))
    assert "`nvidia-cublas`, which the package does not require" in hit.what


def test_an_extension_finds_the_libraries_of_torch_in_the_process() -> None:
    files: dict[str, Binary | str] = {"vision/_C.so": library("libc10.so", "libtorch_cpu.so")}
    assert not hits("linking-unresolved", subject_of(package(files, requires=["torch==2.13.0"])))
    hit, _ = hits("linking-undeclared", subject_of(package(files)))
    assert "needs `libc10.so` of `torch`" in hit.what
    torch = package({"torch/lib/libc10.so": library()}, name="torch-2.13.0-cp312-cp312-x.whl")
    subject = subject_of(package(files, requires=["torch"]), others=[torch])
    [hit] = hits("linking-unresolved", subject)
    assert "libtorch_cpu.so" in hit.what


def test_an_extension_finds_what_torch_has_loaded_of_others() -> None:
    files: dict[str, Binary | str] = {"vision/_C.so": library("libcudart.so.13")}
    assert not hits("linking-unresolved", subject_of(package(files, requires=["torch"])))
    assert hits("linking-unresolved", subject_of(package(files)))
    assert not hits("linking-undeclared", subject_of(package(files)))
    for runtime, is_found in (("libcudart.so.13", True), ("libcudart.so.12", False)):
        torch = package({"torch/lib/libc10_cuda.so": library(runtime)}, name="torch-2-x.whl")
        subject = subject_of(package(files, requires=["torch"]), others=[torch])
        assert (not hits("linking-unresolved", subject)) == is_found


def test_torch_must_bring_its_own_libraries() -> None:
    files: dict[str, Binary | str] = {"torch/_C.so": library("libtorch_cpu.so")}
    contents = package(files, name="torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl")
    assert hits("linking-unresolved", subject_of(contents))
    assert not hits("linking-undeclared", subject_of(contents))


def conda(name: str, files: dict[str, Binary | str], depends: list[str]) -> Contents:
    index = msgspec.json.encode({**INDEX, "name": name, "depends": depends})
    file = f"{name}-1.0-h0_0.conda"
    return package(files, name=file, kind="conda", texts={"info/index.json": index})


def test_dependencies_of_a_conda_package_are_trusted_unless_they_are_given() -> None:
    user: dict[str, Binary | str] = {"lib/liba.so": library("libthing.so")}
    contents = conda("thing", user, ["libthing 1.0.*", "python", "__glibc >=2.28"])
    assert not hits("linking-unresolved", subject_of(contents))
    given = conda("libthing", {"lib/libthing.so": library()}, [])
    assert not hits("linking-unresolved", subject_of(contents, others=[given]))
    empty = conda("libthing", {}, [])
    assert hits("linking-unresolved", subject_of(contents, others=[empty]))
    assert not hits("linking-unresolved", subject_of(contents, others=[empty, given]))
    assert hits("linking-unresolved", subject_of(conda("thing", user, ["__glibc >=2.28"])))


def test_packages_of_a_conda_channel_bring_the_libraries_they_are_known_for() -> None:
    user: dict[str, Binary | str] = {"lib/liba.so": library("libcublas.so.13", "libgomp.so.1")}
    both = ["libcublas >=13,<14.0a0", "_openmp_mutex >=4.5"]
    assert not hits("linking-unresolved", subject_of(conda("thing", user, both)))
    assert not hits("linking-undeclared", subject_of(conda("thing", user, both)))
    [hit] = hits("linking-undeclared", subject_of(conda("thing", user, ["libcublas >=13"])))
    assert "needs `libgomp.so.1` of `openmp-mutex`" in hit.what
    user = {"lib/liba.so": library("libthing.so")}
    [hit] = hits("linking-unresolved", subject_of(conda("thing", user, both)))
    assert "needs `libthing.so`" in hit.what, "it is in neither of them"
    assert not hits("linking-unresolved", subject_of(conda("thing", user, [*both, "unknown"])))


def test_a_link_may_lead_to_the_file_of_another_package() -> None:
    site = "lib/python3.12/site-packages/thing"
    files: dict[str, Binary | str] = {
        f"{site}/_C.so": library("libthing.so", runpath="$ORIGIN/lib"),
        f"{site}/lib/libthing.so": "../../../../libthing.so",
    }
    contents = conda("thing", files, ["libthing"])
    given = conda("libthing", {"lib/libthing.so": library()}, [])
    assert not hits("linking-unresolved", subject_of(contents, others=[given]))
    empty = conda("libthing", {}, [])
    assert hits("linking-unresolved", subject_of(contents, others=[empty]))


@pytest.mark.parametrize(
    ("file", "kind", "name"),
    [
        (CUBLAS, "wheel", "nvidia-cublas"),
        ("libtorch-cuda-linalg-2.13.0-h0_0.conda", "conda", "libtorch-cuda-linalg"),
    ],
)
def test_names_are_those_of_the_file(file: str, kind: str, name: str) -> None:
    assert distribution_of(package({}, name=file, kind=kind)) == name


def test_damaged_metadata_asks_for_nothing() -> None:
    for index in (
        b"\xff",
        b"[]",
        b'{"depends": 1}',
        msgspec.json.encode({**INDEX, "depends": ["", " "]}),
    ):
        contents = package({}, name="a-1-0.conda", kind="conda", texts={"info/index.json": index})
        assert requirements_by_name(contents) == {}


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("libcublasLt.so.13", True),
        ("libcudart-d0da41ae.so.13", True),
        ("libcudnn_ops.so.9", True),
        ("libtorch_cuda.so", False),
        ("libcuda.so.1", False),
    ],
)
def test_nvidias_libraries_are_known_by_their_names(library: str, expected: bool) -> None:
    assert is_vendors(library) == expected


def test_files_of_a_wheels_data_folder_are_where_they_are_installed() -> None:
    user = package(
        {"thing/lib/liba.so": library("libsycl.so.8", runpath="$ORIGIN/../../../..")},
        requires=["intel-sycl-rt"],
    )
    name = "intel_sycl_rt-2025.2-py2.py3-none-manylinux_2_28_x86_64.whl"
    files: dict[str, Binary | str] = {"intel_sycl_rt-2025.2.data/data/lib/libsycl.so.8": library()}
    assert hits("linking-unresolved", subject_of(user))
    brought = package(files, name=name)
    assert not hits("linking-unresolved", subject_of(user, others=[brought]))
