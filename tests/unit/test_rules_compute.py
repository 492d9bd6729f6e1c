import msgspec
import pytest
from tests.support.made import EXPECTED, hits, library, package, subject_of

from torchyard.checks.rules.compute import architectures
from torchyard.checks.subject import Subject
from torchyard.compute.registry import device_codes
from torchyard.package.contents import Binary


def thing(
    *binaries: Binary, requires: tuple[str, ...] = (), compute: str = "", archs: str = ""
) -> Subject:
    files: dict[str, Binary | str] = {
        f"thing/lib/lib{number}.so": binary for number, binary in enumerate(binaries)
    }
    expected = msgspec.structs.replace(EXPECTED, compute=compute, archs=tuple(archs.split()))
    return subject_of(package(files, requires=requires), expected)


@pytest.mark.parametrize(
    ("archs", "expected"),
    [
        (("8.0", "12.0+PTX"), {"sm_80", "sm_120", "compute_120"}),
        (("9.0a",), {"sm_90a"}),
        (("9.0a+PTX",), {"sm_90a", "compute_90a"}),
        (("gfx90a", "gfx1100"), {"gfx90a", "gfx1100"}),
        (("gfx90a:xnack+", "gfx908:sramecc+:xnack-"), {"gfx90a:xnack+", "gfx908:sramecc+:xnack-"}),
    ],
)
def test_arch_lists_are_spelt_as_in_the_code(archs: tuple[str, ...], expected: set[str]) -> None:
    assert set(device_codes(archs)) == expected


def test_architectures_are_listed_with_their_sizes() -> None:
    first, second = library(device=["sm_80", "sm_90"]), library(device=["sm_80"])
    found = architectures(thing(first, second).contents)
    assert found == {
        "sm_80": {"thing/lib/lib0.so": 100, "thing/lib/lib1.so": 100},
        "sm_90": {"thing/lib/lib0.so": 100},
    }


@pytest.mark.parametrize(
    ("device", "archs", "what"),
    [
        (["sm_80", "sm_90", "compute_90"], "8.0 9.0+PTX", ""),
        (["sm_80", "sm_90", "sm_90a"], "8.0 9.0", ""),
        (["gfx90a"], "gfx90a", ""),
        (["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a:xnack+ gfx90a:xnack-", ""),
        (["gfx90a", "gfx90a:xnack+"], "gfx90a", ""),
        (["gfx90a:xnack-"], "gfx90a:xnack+", "lacks code for gfx90a:xnack+ and has code for"),
        (["sm_80", "sm_90"], "", ""),
        (["sm_80"], "8.0 9.0", "lacks code for sm_90; asked for: 8.0, 9.0"),
        (["sm_80", "sm_90"], "8.0 9.0+PTX", "lacks code for compute_90"),
        (["sm_80", "sm_90"], "8.0", "has code for sm_90, which was not requested"),
        (["sm_90"], "9.0a", "lacks code for sm_90a and has code for sm_90, which was not"),
        ([], "9.0", "no file has code for GPUs"),
    ],
)
def test_compute_archs(device: list[str], archs: str, what: str) -> None:
    found = hits("compute-archs", thing(library(device=device), library(), archs=archs))
    assert [hit.what.startswith(what) for hit in found] == ([True] if what else [])


def test_compute_archs_must_be_in_every_library_with_code() -> None:
    full, part = library(device=["sm_80", "sm_90"]), library(device=["sm_80"])
    [hit] = hits("compute-archs", thing(full, part, archs="8.0 9.0"))
    assert hit.member == "thing/lib/lib1.so"


@pytest.mark.parametrize(("arch", "count"), [("sm_70", 1), ("sm_80", 0)])
def test_a_bundled_library_may_have_code_for_more(arch: str, count: int) -> None:
    """As MAGMA of a Linux distribution; without code for what is asked for, it is of no use."""
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library(device=["sm_80"]),
        "thing/lib/libmagma-09ff2783.so.2": library(device=[arch, "sm_75"]),
    }
    expected = msgspec.structs.replace(EXPECTED, archs=("8.0",))
    assert len(hits("compute-archs", subject_of(package(files), expected))) == count


def test_compute_archs_of_nvidias_libraries_are_theirs() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library(device=["sm_80"]),
        "thing/lib/libnccl.so.2": library(device=["sm_70"]),
    }
    expected = msgspec.structs.replace(EXPECTED, archs=("8.0",))
    assert not hits("compute-archs", subject_of(package(files), expected))


@pytest.mark.parametrize(
    ("requires", "compute", "is_right"),
    [
        ("cuda-toolkit[cublas]==13.0.*", "cu130", True),
        ("cuda-toolkit[cublas]==13.0.2", "cu130", True),
        ("cuda-toolkit[cublas]==13.2.2", "cu130", False),
        ("cuda-toolkit[cublas]>=13.0", "cu130", False),
        ("cuda-toolkit[cublas]==13.0.*", "cpu", True),
        ("nvidia-cudnn-cu13==9.12.0.46", "cu130", True),
        ("nvidia-cudnn-cu13==9.13.0.50", "cu130", False),
        ("nvidia-cudnn-cu13>=9.12.0.46", "cu130", False),
        ("nvidia-nccl-cu13==2.27.7", "cu130", True),
    ],
)
def test_compute_versions_that_are_required(requires: str, compute: str, is_right: bool) -> None:
    pins = {"cudnn": "9.12.0.46"}
    expected = msgspec.structs.replace(EXPECTED, compute=compute, pins=pins)
    subject = subject_of(package({}, requires=[requires]), expected)
    assert bool(hits("compute-versions", subject)) != is_right


def test_compute_versions_that_are_brought_along() -> None:
    contents = package({"thing/lib/libcudnn.so.9": library()})
    for version, is_right in (("9.12.0.46", True), ("10.1.0", False)):
        expected = msgspec.structs.replace(EXPECTED, compute="cu130", pins={"cudnn": version})
        found = hits("compute-versions", subject_of(contents, expected))
        assert (not found) == is_right


@pytest.mark.parametrize(
    ("binary", "compute", "what"),
    [
        (library("libc.so.6"), "cpu", ""),
        (library("libcudart.so.13"), "cpu", "needs `libcudart.so.13`, but the package is for cpu"),
        (library("libamdhip64.so.5"), "cpu", "needs `libamdhip64.so.5`, but"),
        (library("libcuda.so.1"), "cpu", "needs `libcuda.so.1`, but"),
        (library(device=["sm_90"]), "cpu", "has code for sm_90, but the package is for cpu"),
        (library("libcudart.so.13"), "cu130", ""),
        (library("libcudart.so.12"), "cu130", "needs `libcudart.so.12`, but"),
        (library(device=["sm_90"]), "cu130", ""),
        (library("libc.so.6"), "cu130", "nothing in the package uses a GPU"),
        (library("libamdhip64.so.5"), "rocm5.2", ""),
        (library(device=["gfx90a"]), "rocm5.2", ""),
        (library("libc.so.6"), "rocm5.2", "nothing in the package uses a GPU"),
        (library("libcudart.so.12"), "", ""),
        (library("libcudart.so.12"), "xpu", ""),
    ],
)
def test_label_compute(binary: Binary, compute: str, what: str) -> None:
    found = hits("label-compute", thing(binary, compute=compute))
    assert [hit.what.startswith(what) for hit in found] == ([True] if what else [])


def test_label_compute_of_mixed_packages() -> None:
    cuda, rocm = library("libcudart.so.13"), library("libamdhip64.so.5")
    for compute, wrong in (("cu130", 1), ("rocm5.2", 0)):
        [hit] = hits("label-compute", thing(cuda, rocm, compute=compute))
        assert hit.member == f"thing/lib/lib{wrong}.so"


def test_label_compute_asks_nothing_of_packages_without_libraries() -> None:
    assert not hits("label-compute", thing(compute="cu130"))
