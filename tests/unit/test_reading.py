"""The source of a project says what it is and what its build does; none of its code is run."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from torchyard.toolchain.reading.cmake_code import read_cmake
from torchyard.toolchain.reading.project import ProjectReading, read_project
from torchyard.toolchain.reading.python_code import read_python
from torchyard.toolchain.reading.source_text import Download, DownloadKind, SourceLine, Switch

SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
raise SystemExit("it was run")
__version__ = '1.2.2'
modules = [CUDAExtension(name="my_ext_cuda", sources=["a.cu"])]
setup(name='my_ext', version=__version__, ext_modules=modules)
"""
PYPROJECT = """
[build-system]
requires = ["scikit-build-core", "torch>=2.10"]
build-backend = "scikit_build_core.build"
[project]
name = "other-ext"
version = "0.3"
requires-python = ">=3.10"
[project.urls]
documentation = "https://other-ext.example"
repository = "https://github.com/me/other-ext"
"""


def tree(folder: Path, files: Mapping[str, str]) -> ProjectReading:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_project(folder)


def test_a_setup_py_is_read_and_not_run(tmp_path: Path) -> None:
    found = tree(tmp_path, {"setup.py": SETUP})
    assert found.is_extension
    assert found.name == SourceLine("my_ext", "setup.py", 7), "not that of its module"
    assert found.version is not None
    assert found.version.text == "1.2.2"
    assert found.torch == SourceLine("torch.utils.cpp_extension", "setup.py", 3)
    assert found.cuda == SourceLine("CUDAExtension", "setup.py", 6)
    assert found.backend == SourceLine("setuptools", "setup.py")
    assert found.requires_python is None


def test_a_pyproject_comes_first_and_sources_show_cuda(tmp_path: Path) -> None:
    files = {"pyproject.toml": PYPROJECT, "setup.py": "setup(name='x')", "csrc/kernel.cu": ""}
    found = tree(tmp_path, files)
    assert found.is_extension
    assert found.name == SourceLine("other-ext", "pyproject.toml", 6)
    assert found.requires_python == SourceLine(">=3.10", "pyproject.toml", 8)
    assert found.compiles == SourceLine("scikit-build-core", "pyproject.toml", 4)
    assert found.torch_ranges == (SourceLine(">=2.10", "pyproject.toml", 3),)
    assert found.cuda == SourceLine("csrc/kernel.cu", "csrc/kernel.cu")
    assert found.repository == "https://github.com/me/other-ext"


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        ("mesonpy", "meson-python"),
        ("py_build_cmake.build", "py-build-cmake"),
        ("maturin", "maturin"),
        ("hatchling.build", None),
        ("setuptools.build_meta", None),
    ],
)
def test_backends_that_compile_are_known(tmp_path: Path, backend: str, name: str | None) -> None:
    text = PYPROJECT.replace("scikit_build_core.build", backend)
    compiles = tree(tmp_path, {"pyproject.toml": text}).compiles
    assert (compiles and compiles.text) == name


def test_a_project_of_pure_python_compiles_nothing(tmp_path: Path) -> None:
    setup = (
        "import torch\nsetup(name='torchsde', packages=find_packages(), install_requires=['torch'])"
    )
    found = tree(tmp_path, {"setup.py": setup, "torchsde/__init__.py": "__version__ = '0.2.6'"})
    assert (found.compiles, found.is_extension) == (None, False)
    assert found.version == SourceLine("0.2.6", "torchsde/__init__.py", 1)


def test_libraries_that_were_compiled_elsewhere_are_named(tmp_path: Path) -> None:
    files = {"setup.py": "setup(name='bnb')", "bnb/libbnb_cuda118.so": ""}
    assert tree(tmp_path, files).brings == "bnb/libbnb_cuda118.so"


@pytest.mark.parametrize(
    ("modules", "only"),
    [
        ("[CUDAExtension('a', s)]", True),
        ("[CUDAExtension('a', s) if cuda else CppExtension('a', s)]", False),
        ("[CppExtension('a', s)]", False),
        ("[CMakeExtension('a'), CUDAExtension('b', s)]", False),
        ("[Extension('natten')]", True),
    ],
)
def test_a_project_whose_modules_are_all_for_cuda_is_seen(
    tmp_path: Path, modules: str, only: bool
) -> None:
    imports = "from torch.utils.cpp_extension import CppExtension, CUDAExtension\n"
    files = {"setup.py": f"{imports}setup(ext_modules={modules})"}
    if "natten" in modules:
        files["csrc/CMakeLists.txt"] = "project(natten LANGUAGES CXX CUDA)"
    assert tree(tmp_path, files).cuda_only is only


ENVIRONMENT = '''
import os
from os import environ, getenv
BUILD = os.getenv("BUILD_MONAI", "0") == "1"
if "EXLLAMA_NOCOMPILE" in os.environ: pass
CUDA = int(environ.get("BUILD_CUDA_EXT", "1")) == 1
def get_env_if_set(key, default=""):
    """A helper, as DeepSpeed has one."""
    return os.environ.get(key, None) or default
OPS = int(get_env_if_set("DS_BUILD_OPS", 0))
for op in ops: getenv(f"DS_BUILD_{op}")
os.environ["SET_BY_IT"] = "1"
NAME = "BY_A_NAME"
os.environ[NAME]
os.getenv("CC"), os.getenv(computed())
'''


def test_switches_in_python_are_found() -> None:
    found = {
        (one.text, one.default, one.expects, one.line)
        for one in read_python("s", ENVIRONMENT).switches
    }
    assert found == {
        ("BUILD_MONAI", "0", "1", 4),
        ("EXLLAMA_NOCOMPILE", "", "", 5),
        ("BUILD_CUDA_EXT", "1", "1", 6),
        ("DS_BUILD_OPS", "0", "", 10),
        ("DS_BUILD_*", "", "", 11),
        ("BY_A_NAME", "", "", 14),
        ("CC", "", "", 15),
    }


def test_a_switch_is_told_once_where_its_default_is_and_ordinary_variables_are_none(
    tmp_path: Path,
) -> None:
    setup = "import os\nos.getenv('A')\nos.getenv('A', '1')\nos.getenv('A')\nos.getenv('CC')\n"
    cmake = 'option(WITH_CUDA "for CUDA" OFF)\nset(X $ENV{METIS_DIR})  # $ENV{NOT_THIS}\n'
    found = tree(
        tmp_path, {"setup.py": setup, "CMakeLists.txt": cmake, "cmake/FindX.cmake": "$ENV{Y}"}
    )
    assert found.switches == (
        Switch("A", "setup.py", 3, default="1"),
        Switch("METIS_DIR", "CMakeLists.txt", 2),
        Switch("WITH_CUDA", "CMakeLists.txt", 1, default="OFF", is_cmake=True),
    )


CMAKE = """
# FetchContent_Declare(not_this URL https://example.org/x)
#[=[ nor this: ]] FetchContent_Declare(x URL https://example.org/y)
FetchContent_Declare(y URL https://example.org/y)
#]=] #[[ FetchContent_Declare(z URL https://example.org/z) ]]
set(EIGEN "https://gitlab.com/libeigen/eigen.tar.bz2")
FetchContent_Declare(
    gpulite   # (a comment)
    GIT_REPOSITORY https://github.com/metatensor/gpu-lite.git
    GIT_TAG ceb0ceb0ceb0ceb0ceb0ceb0ceb0ceb0ceb0ceb0 # tag 'v1'
)
FetchContent_Declare(here SOURCE_DIR ${X})
FetchContent_MakeAvailable(gpulite)
ExternalProject_Add( eigen URL "${EIGEN}"
  URL_HASH SHA256=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)
file(DOWNLOAD "https://example.org/${V}/catch.hpp" "${CMAKE_BINARY_DIR}/x" EXPECTED_HASH SHA256=bb)
file(GLOB SOURCES "*.cpp")
CPMAddPackage(NAME fmt GITHUB_REPOSITORY fmtlib/fmt GIT_TAG 11.0)
find_package(Torch 2.6 REQUIRED)
project(x LANGUAGES CXX CUDA)
"""


def test_downloads_of_cmake_are_found() -> None:
    found = read_cmake("CMakeLists.txt", CMAKE)
    git = "https://github.com/metatensor/gpu-lite.git"
    url = "https://gitlab.com/libeigen/eigen.tar.bz2"
    file = "CMakeLists.txt"
    assert found.downloads == (
        Download(
            "gpulite", file, 7, kind=DownloadKind.FETCH_CONTENT, url=git, revision="ceb0" * 10
        ),
        Download(
            "eigen",
            file,
            14,
            kind=DownloadKind.EXTERNAL_PROJECT,
            url=url,
            digest=f"SHA256={'aa' * 32}",
        ),
        Download(
            "catch.hpp",
            file,
            16,
            kind=DownloadKind.CMAKE_FILE,
            url="https://example.org/${V}/catch.hpp",
            digest="SHA256=bb",
        ),
        Download(
            "fmt",
            file,
            18,
            kind=DownloadKind.CPM,
            url="https://github.com/fmtlib/fmt",
            revision="11.0",
        ),
    )
    assert found.torch == SourceLine("2.6", file, 19)
    assert found.cuda == SourceLine("project", file, 20)


def test_a_download_that_the_source_has_is_none(tmp_path: Path) -> None:
    """As vesin-torch's: CMake takes the archive of its sdist, or else clones a repository."""
    declare = "FetchContent_Declare(gpulite {})\n"
    archive = "URL ${CMAKE_CURRENT_SOURCE_DIR}/external/gpulite.tar.gz"
    cloned = "GIT_REPOSITORY https://github.com/metatensor/gpu-lite.git"
    text = f"{declare.format(archive)}{declare.format(cloned)}"
    found = tree(tmp_path, {"lib/CMakeLists.txt": text})
    assert [one.line for one in found.downloads] == [1, 2]
    found = tree(tmp_path, {"lib/external/gpulite.tar.gz": ""})
    assert found.downloads == ()


FETCHING = """
import subprocess, urllib.request
URL = "https://example.org/"
urllib.request.urlretrieve(wheel_url, "x.whl")
requests.get(URL + "x.zip")
subprocess.run(["git", "submodule", "update", "--init", "csrc/cutlass"], check=True)
os.system("git clone https://github.com/x/y")
subprocess.check_call([sys.executable, "-m", "pip", "install", "cmake"])
subprocess.run(["git", "rev-parse", "HEAD"]), settings.get("x"), subprocess.run(["curly"])
"""


def test_downloads_of_python_are_found() -> None:
    found = [
        (one.line, one.kind, one.text, one.url) for one in read_python("s", FETCHING).downloads
    ]
    assert sorted(found) == [
        (4, "Python", "urllib.request.urlretrieve", "wheel_url"),
        (5, "Python", "requests.get", "https://example.org/x.zip"),
        (6, "a program", "git submodule update --init csrc/cutlass", ""),
        (7, "a program", "git clone https://github.com/x/y", "https://github.com/x/y"),
        (8, "a program", "-m pip install cmake", ""),
    ]


def test_submodules_without_files_and_crates_are_downloads(tmp_path: Path) -> None:
    modules = "".join(
        f'[submodule "{name}"]\n\tpath = {name}\n\turl = https://example.org/{name}\n'
        for name in ("third_party/full", "third_party/empty", "../out")
    )
    files = {".gitmodules": modules, "third_party/full/x.h": "", "Cargo.toml": ""}
    url, kind = "https://example.org/third_party/empty", DownloadKind.SUBMODULE
    assert tree(tmp_path, files).downloads == (
        Download("third_party/empty", ".gitmodules", 5, kind=kind, url=url),
        Download("crates", "Cargo.toml", kind=DownloadKind.CARGO),
    )


def test_other_projects_and_tests_in_the_tree_say_nothing_of_the_build(tmp_path: Path) -> None:
    files = {f"{name}/CMakeLists.txt": CMAKE for name in ("third_party/x", "tests", "pybind11")}
    assert tree(tmp_path, files).downloads == ()


def test_what_setup_py_and_a_backend_of_its_own_import_is_required(tmp_path: Path) -> None:
    pyproject = """
[build-system]
requires = ["setuptools", "ninja"]
build-backend = "backend"
backend-path = ["build-backend"]
"""
    backend = """
from setuptools import build_meta
DEP = "torch >=2.6"
def get_requires_for_build_wheel(config_settings=None):
    return build_meta.get_requires_for_build_wheel(config_settings) + ["cmake >=3.30", DEP]
"""
    setup = """
import ninja, packaging.version, helper, os, torch
from pkg_resources import get_distribution
try:
    import optional
except ImportError:
    pass
def late():
    import Cython
setup(name="x", ext_modules=[], setup_requires=["setuptools_scm", "ninja"])
"""
    helper = "import numpy"
    files = {"pyproject.toml": pyproject, "build-backend/backend.py": backend}
    found = tree(tmp_path, files | {"setup.py": setup, "helper.py": helper})
    assert found.backend == SourceLine("its own backend", "pyproject.toml", 4)
    assert [(one.text, one.where) for one in found.build_requires] == [
        ("cmake >=3.30", "build-backend/backend.py:5"),
        ("setuptools_scm", "setup.py:10"),
        ("packaging", "setup.py:2"),
        ("setuptools<82", "setup.py:3"),
        ("cython", "setup.py:9"),
        ("numpy", "helper.py:1"),
    ]


def test_the_torch_that_code_and_metadata_ask_for_is_found(tmp_path: Path) -> None:
    metadata = (
        "Metadata-Version: 2.1\nRequires-Dist: torch<3\nRequires-Dist: torch<1; extra == 'x'\n"
    )
    setup = 'need = ["torch>=1.13", "numpy"]\nsetup(name="x", install_requires=need)\n'
    flags = 'flags = ["-DTORCH_TARGET_VERSION=0x020a000000000000"]\ntests = ["torch==1.4.0"]\n'
    cmake = "find_package(Torch 2.6 REQUIRED)\n"
    files = {"PKG-INFO": metadata, "setup.py": setup + flags, "CMakeLists.txt": cmake}
    assert [(one.text, one.where) for one in tree(tmp_path, files).torch_ranges] == [
        ("<3", "PKG-INFO"),
        (">=1.13", "setup.py:1"),
        (">=2.6", "CMakeLists.txt:1"),
        (">=2.10", "setup.py:3"),
    ]


USES = """
import os, torch.nn, scipy.sparse
import cv2
from torch_scatter import scatter_add
from . import near
from my_ext.sub import x
try:
    import optional_one
except ImportError:
    pass
def late():
    import another_one
raise SystemExit("it was run")
"""


def test_imports_that_are_not_declared_are_found(tmp_path: Path) -> None:
    text = SETUP.replace("ext_modules", "install_requires=['SciPy'], ext_modules")
    modules = {"__init__": "", "sub/x": USES, "zz": USES, "odd": "(" * 5000}
    (tmp_path / "my_ext/dir.py").mkdir(parents=True)
    files = {f"my_ext/{name}.py": content for name, content in modules.items()}
    about = "Name: my_ext\n\nIt needs torch_scatter, which the description alone says.\n"
    found = tree(tmp_path, {"setup.py": text, "PKG-INFO": about, **files})
    assert found.undeclared == (
        SourceLine("cv2", "my_ext/zz.py", 3),
        SourceLine("torch_scatter", "my_ext/zz.py", 4),
    )


def test_a_name_leads_to_no_other_folder(tmp_path: Path) -> None:
    other, project = tmp_path / "other", tmp_path / "project"
    other.mkdir()
    (other / "x.py").write_text("import missing\n", encoding="utf-8")
    (other / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
    for name in (str(other), "../other", "a\\u001b]0;x"):
        found = tree(project, {"pyproject.toml": PYPROJECT.replace("other-ext", name)})
        assert (found.name, found.undeclared) == (None, ())
    (project / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (project / "other_ext").symlink_to(other)
    (project / "src/other_ext").mkdir(parents=True)
    (project / "src/other_ext/x.py").symlink_to(other / "x.py")
    (project / "CMakeLists.txt").symlink_to(other / "CMakeLists.txt")
    (project / "setup.py").symlink_to(project / "setup.py")
    found = read_project(project)
    assert (found.undeclared, found.downloads) == ((), ())


def test_of_many_imports_a_few_are_told(tmp_path: Path) -> None:
    many = "".join(f"import m{number}\n" for number in range(1000))
    large = "#" * (5 << 20) + "\nimport large\n"
    files = {"setup.py": SETUP, "my_ext/a.py": many, "my_ext/b.py": large}
    assert len(tree(tmp_path, files).undeclared) == 20


@pytest.mark.parametrize(
    "text",
    [
        "v = v + 'x'\nsetup(name=v, version=v)",
        "a = " + "+".join("1" * 5000),
        "(" * 5000,
        "x = '\\ud800'\nimport \0",
        "\N{ZERO WIDTH NO-BREAK SPACE}setup(name='x')",
        "a" + ".b" * 5000,
        "if " + "not " * 5000 + "x: pass",
    ],
)
def test_odd_python_is_read_or_left(tmp_path: Path, text: str) -> None:
    assert tree(tmp_path, {"setup.py": text}).backend == SourceLine("setuptools", "setup.py")


@pytest.mark.parametrize(
    "text",
    [
        "a(\n" * 50_000,
        'a("\n' * 50_000,
        "a(" + "(" * 200_000,
        "set(A ${A}${A})\noption(${A})",
        "ENV{" * 9999,
        "#[[" * 100_000,
        "#[" + "=" * 300_000,
    ],
)
def test_odd_cmake_takes_no_long_time(text: str) -> None:
    assert read_cmake("CMakeLists.txt", text).downloads == ()


def test_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_bytes(b"\xff\xfe" + SETUP.encode("utf-16-le"))
    (tmp_path / "CMakeLists.txt").write_bytes(b"\xff\nfind_package(Torch)\n\xfe")
    torch = read_project(tmp_path).torch
    assert torch == SourceLine("find_package(Torch)", "CMakeLists.txt", 2)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000,
        "a = " + "9" * 5000,
        "",
        "[project",
        "project = 1",
        PYPROJECT.replace("torch>=", "numpy>="),
        PYPROJECT.replace("torch>=", "torchyard>="),
        PYPROJECT.replace("other-ext", "torch"),
    ],
)
def test_what_is_not_compiled_against_torch_is_no_extension(tmp_path: Path, text: str) -> None:
    assert not tree(tmp_path, {"pyproject.toml": text}).is_extension
