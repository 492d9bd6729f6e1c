"""What conda packages say about themselves, compared with what the feedstock's say."""

import sys
from pathlib import Path, PurePosixPath

import msgspec
import pytest
from rattler import MatchSpec
from tests.support.contents import contents

from torchyard.config.tables import load_tables
from torchyard.errors import BuildError, DataError, HostError, PlanError
from torchyard.host.files import read_data
from torchyard.model.match_spec import match_spec_fault
from torchyard.package.assemble.vendor import Vendored
from torchyard.package.conda.about import About, about
from torchyard.package.conda.format import CondaFormat
from torchyard.package.conda.layout import lay_out_linalg, lay_out_package
from torchyard.package.conda.metadata import CondaBuild, CondaKind, CondaMetadata, describe
from torchyard.package.conda.requirements import conda_requirements
from torchyard.package.conda.table import load_conda_table, parse_conda_table
from torchyard.package.conda.write import write_conda

TORCH = CondaBuild(
    name="torch",
    version="2.14.0+cu130",
    compute="cu130",
    blas="mkl",
    subdir="linux-64",
    build_hash="bbbbbbb",
    core_hash="ccccccc",
    python="cp312",
)


def torch(kind: CondaKind, **changes: object) -> CondaMetadata:
    return describe(kind, msgspec.structs.replace(TORCH, **changes))


def test_the_package() -> None:
    assert torch(CondaKind.PACKAGE, requires=("filelock", "sympy>=1.13.3")) == CondaMetadata(
        name="pytorch",
        version="2.14.0",
        build="cuda130_mkl_py312_hbbbbbbb_130300",
        number=130300,
        subdir="linux-64",
        depends=(
            "python >=3.12,<3.13.0a0",
            "python_abi 3.12.* *_cp312",
            "__glibc >=2.28,<3.0.a0",
            "__cuda >=13.0",
            "libtorch ==2.14.0 cuda130_mkl_hccccccc_130300",
            "filelock",
            "sympy >=1.13.3",
        ),
        constrains=("pytorch-gpu ==2.14.0", "pytorch-cpu <0.0a0"),
        run_exports=("pytorch >=2.14.0,<2.15.0a0", "libtorch >=2.14.0,<2.15.0a0"),
    )


def test_the_libraries() -> None:
    assert torch(CondaKind.LIBRARIES, compute="cpu", blas="generic") == CondaMetadata(
        name="libtorch",
        version="2.14.0",
        build="cpu_generic_hccccccc_0",
        number=0,
        subdir="linux-64",
        depends=(
            "__glibc >=2.28,<3.0.a0",
            "libblas >=3.9.0,<4.0a0",
            "libcblas >=3.9.0,<4.0a0",
            "liblapack >=3.9.0,<4.0a0",
        ),
        constrains=(
            "pytorch-cpu ==2.14.0",
            "pytorch-gpu <0.0a0",
            "pytorch ==2.14.0 cpu_generic_*_0",
            "libopenblas * openmp_*",
            "openblas * openmp_*",
        ),
        run_exports=("libtorch >=2.14.0,<2.15.0a0",),
    )


def test_the_plugin() -> None:
    with_magma = torch(CondaKind.LINALG)
    assert (with_magma.name, with_magma.number) == ("libtorch-cuda-linalg", 130310)
    assert with_magma.build == "cuda130_mkl_magma_hccccccc_130310"
    assert "libtorch ==2.14.0 cuda130_mkl_hccccccc_130300" in with_magma.depends
    assert torch(CondaKind.LINALG, magma=False).build == "cuda130_mkl_nomagma_hccccccc_130300"
    either = "libtorch-cuda-linalg ==2.14.0 cuda130_mkl_*_hccccccc_*"
    assert either in torch(CondaKind.PACKAGE, linalg_apart=True).depends
    assert either in torch(CondaKind.LIBRARIES, linalg_apart=True).constrains
    with pytest.raises(PlanError, match="cpu has no linalg plugin"):
        torch(CondaKind.LINALG, compute="cpu")


def test_libraries_of_the_channel_are_required_as_the_table_says() -> None:
    needed = frozenset({"libcublas.so.13", "libcudnn.so.9", "libgomp.so.1", "libnew.so.7"})
    described = torch(
        CondaKind.LIBRARIES,
        channel_libraries=True,
        pins={"cuda": "13.2", "cudnn": "9.20.0.48", "nccl": "2.29.7"},
        needed=needed,
    )
    assert described.depends == (
        "__glibc >=2.28,<3.0.a0",
        "cuda-version >=13.2,<14.0a0",
        "libcublas >=13,<14.0a0",
        "libcudnn >=9.20.0.48,<10.0a0",
        "_openmp_mutex >=4.5",
    )
    unpinned = torch(CondaKind.LINALG, channel_libraries=True, needed=needed).depends
    assert {"cuda-version >=13.0,<14.0a0", "libcudnn >=9,<10.0a0"} < set(unpinned)
    assert torch(CondaKind.LIBRARIES, needed=needed) == torch(CondaKind.LIBRARIES)


def test_runtime_libraries_of_the_compiler_are_required_as_new_as_needed() -> None:
    libraries = torch(
        CondaKind.LIBRARIES,
        compute="cpu",
        needed=frozenset({"libstdc++.so.6", "libgcc_s.so.1", "libc.so.6"}),
        symbols=frozenset(
            {"GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "CXXABI_1.3.13", "GCC_3.0", "GCC_4.3.0"}
        ),
    )
    assert libraries.depends == ("__glibc >=2.28,<3.0.a0", "libstdcxx >=12", "libgcc >=4")
    zlib = torch(CondaKind.LIBRARIES, compute="cpu", needed=frozenset({"libz.so.1"}))
    assert zlib.depends[1:] == ("libzlib",)


def test_a_package_is_described_by_its_wheel_or_its_tree(tmp_path: Path) -> None:
    assert about(None, tmp_path, (), "MIT") == About(license="MIT")
    text = '[project]\ndescription = "D"\nlicense = "BSD"\nurls = {Homepage = "https://h"}\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    (tmp_path / "LICENSE.txt").touch()
    (tmp_path / "vendor/licenses/libx.so.1").mkdir(parents=True)
    (tmp_path / "vendor/licenses/libx.so.1/copyright").touch()
    library = Vendored(tmp_path / "vendor/libx.so.1", "libx.so.1", PurePosixPath("lib/libx.so.1"))
    assert about(None, tmp_path, (library,), "MIT") == About(
        summary="D",
        homepage="https://h",
        license="BSD",
        licenses={
            "LICENSE.txt": tmp_path / "LICENSE.txt",
            "libx.so.1-copyright": tmp_path / "vendor/licenses/libx.so.1/copyright",
        },
    )
    (tmp_path / "pyproject.toml").write_text("[project]\nlicense = 5\n", encoding="utf-8")
    assert about(None, tmp_path, ()).license is None


def test_the_channel_has_what_wheels_take_from_vendors() -> None:
    """For each library of CUDA's wheels, the name of the same distribution on conda-forge."""
    table, known = load_conda_table(), set(load_conda_table().distributions.values())
    for row in table.libraries:
        for spec in (row.requirement({}), row.requirement({row.pin: "1.2"})):
            assert MatchSpec(spec).name is not None
    packages = {row.package for row in table.libraries}
    assert {"libcublas", "libcudnn", "nccl", "libcusparse", "cuda-cudart"} <= packages & known


@pytest.mark.parametrize(
    ("compute", "blas", "name", "build"),
    [
        ("cpu", "generic", "pytorch-cpu", "cpu_generic_hccccccc_1"),
        ("cpu", "mkl", "pytorch-cpu", "cpu_mkl_hccccccc_101"),
        ("cu126", "generic", "pytorch-gpu", "cuda126_generic_hccccccc_126201"),
        ("cu126", "mkl", "pytorch-gpu", "cuda126_mkl_hccccccc_126301"),
        ("rocm7.2", "openblas", "pytorch-gpu", "rocm72_openblas_hccccccc_1"),
        ("xpu", "mkl", "pytorch-gpu", "xpu_mkl_hccccccc_101"),
    ],
)
def test_metapackages_and_numbers(compute: str, blas: str, name: str, build: str) -> None:
    meta = torch(CondaKind.META, compute=compute, blas=blas, number=1, python=None)
    assert (meta.name, meta.build) == (name, build)
    flavour, number = build.split("_h", maxsplit=1)[0], build.rpartition("_")[2]
    assert meta.depends == (f"pytorch ==2.14.0 {flavour}_*_{number}",)


def test_other_projects_are_named_by_the_rule() -> None:
    names = [describe(kind, msgspec.structs.replace(TORCH, name="tiny")).name for kind in CondaKind]
    assert names == ["tiny", "tiny-tests", "libtiny", "libtiny-linalg", "tiny-gpu"]


def test_a_free_threaded_python_has_another_abi() -> None:
    package = torch(CondaKind.PACKAGE, python="cp313t")
    assert package.build == "cuda130_mkl_py313t_hbbbbbbb_130300"
    assert package.depends[:2] == ("python >=3.13,<3.14.0a0", "python_abi 3.13.* *_cp313t")


def test_the_oldest_system_is_that_of_the_wheels() -> None:
    mac = torch(CondaKind.LIBRARIES, compute="cpu", blas="accelerate", subdir="osx-arm64")
    assert mac.depends == ("__osx >=14.0",)
    mainframe = torch(CondaKind.LIBRARIES, compute="cpu", subdir="linux-s390x")
    assert mainframe.depends == ()


def test_what_can_not_be_described() -> None:
    with pytest.raises(PlanError, match="can't be laid out for win-64"):
        torch(CondaKind.META, subdir="win-64")
    with pytest.raises(PlanError, match="needs a Python, not `None`"):
        torch(CondaKind.PACKAGE, python=None)
    with pytest.raises(BuildError, match="the version `2-final-cut`"):
        torch(CondaKind.META, version="2-final-cut")


def test_a_nightly_fits_its_own_pin() -> None:
    nightly = torch(CondaKind.LIBRARIES, version="2.15.0.dev20261114+cpu", compute="cpu")
    assert nightly.version == "2.15.0.dev20261114"
    assert nightly.run_exports == ("libtorch >=2.15.0.dev20261114,<2.16.0a0",)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("filelock", ["filelock"]),
        ("typing-extensions>=4.10.0", ["typing_extensions >=4.10.0"]),
        ("Typing_Extensions >= 4.10.0", ["typing_extensions >=4.10.0"]),
        ("sympy!=1.13.2,>=1.13.1", ["sympy !=1.13.2,>=1.13.1"]),
        ("setuptools<82; python_version >= '3.12'", ["setuptools <82"]),
        ("setuptools; python_version < '3.12'", []),
        ("optree>=0.13.0; extra == 'optree'", []),
        ("colorama; sys_platform == 'win32'", []),
        ("triton==3.8.0; platform_system == 'Linux' and platform_machine == 'x86_64'",
         ["triton ==3.8.0"]),
        ("torch==2.13.*", ["pytorch 2.13.*"]),
        ("torch==2.13.0+cu130", ["pytorch ==2.13.0"]),
        ("numpy~=1.26.4", ["numpy >=1.26.4,1.26.*"]),
        ("numpy~=1.26", ["numpy >=1.26,1.*"]),
        ("numpy!=1.25.*", ["numpy !=1.25.*"]),
        ("odd===1.0", ["odd ==1.0"]),
        ("nvidia-cudnn-cu13==9.24.0.43", ["libcudnn ==9.24.0.43"]),
        ("nvidia-cublas==13.1.0.3", ["libcublas ==13.1.0.3"]),
        ("mine[all]", []),
    ],
)  # fmt: skip
def test_requirements(requirement: str, expected: list[str]) -> None:
    found = list(conda_requirements([requirement], "mine", "3.12", "linux-64"))
    assert found == expected
    for text in found:
        MatchSpec(text, strict=True)


def test_requirements_that_conda_can_not_have() -> None:
    for text in ("numpy @ https://example.org/numpy.whl", "numpy >> 1"):
        with pytest.raises(BuildError, match="numpy"):
            list(conda_requirements([text], "mine", "3.12", "linux-64"))


def test_conda_understands_all_that_is_said() -> None:
    for subdir in load_conda_table().markers:
        for compute in load_tables().compute:
            for blas in load_tables().blas:
                for kind in CondaKind:
                    if kind is CondaKind.LINALG and compute == "cpu":
                        continue
                    made = torch(kind, subdir=subdir, compute=compute, blas=blas)
                    for text in (*made.depends, *made.constrains, *made.run_exports):
                        MatchSpec(text, strict=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[tests]", "[test]", "malformed"),
        ("magma = 10", 'magma = "ten"', "malformed"),
        ('[names."*"]', "[names.x]", "no default names"),
        ('cpu = "{name}-cpu"', 'cpu = "{name}-gpu"', "that are equal"),
        ('cpu = "{name}-cpu"', 'cpu = "{title}-cpu"', "not only of"),
        ("[blas.generic]", "[blas.quick]", "unknown BLAS `quick`"),
        ('"libnuma.so.1"', '"lib*"', "or all of them"),
        ("[markers.linux-64]", "[markers.beos-64]", "unknown platform `beos-64`"),
    ],
)
def test_a_wrong_table_is_refused(old: str, new: str, message: str) -> None:
    text = read_data("conda.toml")
    assert old in text
    with pytest.raises(DataError, match=message):
        parse_conda_table(text.replace(old, new))


def test_each_kind_of_conda_package_is_in_the_table_of_packages() -> None:
    packages = load_tables().packages
    assert {name for name in packages if packages[name].format == "conda"} == set(CondaKind)


def test_without_rattler_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rattler_build", None)
    metadata = torch(CondaKind.META)
    with pytest.raises(HostError, match="not installed") as failed:
        write_conda(tmp_path, tmp_path, metadata=metadata, description=About(), spec=tmp_path / "o")
    assert failed.value.diagnostics[0].hint == "pip install py-rattler-build"


def test_a_tree_that_can_not_be_packed(tmp_path: Path) -> None:
    metadata = torch(CondaKind.META)
    with pytest.raises(BuildError, match=r"pytorch-gpu-2\.14\.0-.*\.conda can't be written"):
        write_conda(
            tmp_path / "none",
            tmp_path,
            metadata=metadata,
            description=About(),
            spec=tmp_path / "none",
        )


def test_wrong_inputs(tmp_path: Path) -> None:
    image, prefix = tmp_path / "image", tmp_path / "prefix"
    (tmp_path / "core/install/lib").mkdir(parents=True)
    with pytest.raises(BuildError, match="no linalg plugin"):
        lay_out_linalg(tmp_path / "core", prefix, "lib*_linalg.*")
    (image / "x-1.dist-info").mkdir(parents=True)
    (image / "x-1.dist-info/METADATA").write_text("Name: x\n", encoding="utf-8")
    (image / "x-1.data/headers").mkdir(parents=True)
    (image / "x-1.data/headers/x.h").touch()
    with pytest.raises(BuildError, match=r"x-1\.data/headers"):
        lay_out_package(image, None, prefix, prefix / "site", "x")


def test_the_folder_of_a_conda_package_is_the_project_s_own() -> None:
    site = "lib/python3.12/site-packages"
    files = {f"{site}/{name}/_C.so": b"" for name in ("functorch", "torch")}
    made = contents("torch-2.6.0-0.conda", "conda", files)
    assert CondaFormat().python_package(made, "torch") == f"{site}/torch"
    assert CondaFormat().python_package(made, "other") == f"{site}/functorch"


@pytest.mark.parametrize("part", ["a", " ", ",", "1", "a ", "=", "(", "::", "[", "1!", "^"])
def test_hostile_requirements_are_read_at_once(part: str) -> None:
    for length in (900, 200_000):
        assert match_spec_fault(f"a{part * (length // len(part))}]") != ""


@pytest.mark.parametrize(
    "spec",
    [
        *("numpy", "numpy>=2", "numpy >= 2, <3.0a0", "foo =1.2=py_0", "foo 1.2|1.3.*"),
        *("conda-forge::foo >=1", "libblas * openmp_*", "foo[version='>=1']", "foo (>=1,<2)|>3"),
        *("foo ~=1.4", "foo !=1.5", "foo 1!2.0", "__glibc >=2.17,<3.0.a0", "foo >=1.0+cu130"),
        *("foo >=", "foo =>2", "foo >=1,,<2", "foo >=1,", "foo <>2", "foo >>2", "foo==", ""),
        *("foo >=1 || <2", "foo @ https://example.org", "foo bar["),
    ],
)
def test_requirements_are_read_as_by_solvers(spec: str) -> None:
    try:
        MatchSpec(spec, strict=False)
        is_valid = True
    except Exception:  # noqa: BLE001 - rattler has a kind of its own for each fault
        is_valid = False
    assert (not match_spec_fault(spec)) == is_valid
