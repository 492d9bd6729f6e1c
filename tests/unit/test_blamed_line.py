"""Which line of the project a log blames: by what it says, and by looking for it."""

from pathlib import Path
from textwrap import dedent

import pytest

from torchyard.config.failures import load_failures
from torchyard.model.failure import Diagnosis, Found, SourceLocation
from torchyard.run.diagnose import diagnose_log
from torchyard.run.failure import blamed_line

META = "/env/lib/python3.11/site-packages/setuptools/build_meta.py"
SETUP_PY = f"""
    Traceback (most recent call last):
      File "<torchyard>", line 177, in <module>
      File "{META}", line 317, in run_setup
        exec(code, locals())
      File "<string>", line 6, in <module>
      File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 3302, in f
        raise OSError('CUDA_HOME environment variable is not set. '
    OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.
"""
OUTSIDE = """
    Traceback (most recent call last):
      File "<string>", line 6, in <module>
      File "tools/generate.py", line 3, in <module>
    KeyError: 'x'
"""
CMAKE = """
    CMake Error at /usr/share/cmake-3.25/Modules/FindPackageHandleStandardArgs.cmake:230 (message):
      Could NOT find MPI (missing: MPI_CXX_FOUND)
    Call Stack (most recent call first):
      /usr/share/cmake-3.25/Modules/FindMPI.cmake:1837 (find_package_handle_standard_args)
      cmake/Dependencies.cmake:12 (find_package)
      CMakeLists.txt:5 (include)
"""
INCLUDED = """
    In file included from /env/lib/python3.11/site-packages/torch/include/torch/all.h:4,
                     from csrc/ops.cpp:1:
    /env/lib/python3.11/site-packages/torch/include/c10/a.h:4:2: error: 'x' was not declared
"""
NVCC = """
    csrc/kernel.cu(12): error: identifier "x" is undefined
"""
NOTE = """
    csrc/twice.cpp: In function 'long int twice(long int)':
    csrc/twice.cpp:4:8: error: 'unique_ptr' is not a member of 'std'
        4 |   std::unique_ptr<long> kept;
          |        ^~~~~~~~~~
    csrc/twice.cpp:2:1: note: 'std::unique_ptr' is defined in header '<memory>'; did you forget …
"""
FETCH = """
    [1/9] Performing download step (git clone) for 'eigen-populate'
    fatal: unable to access 'https://example.org/eigen.git/': Could not resolve host: example.org
    CMake Error at eigen-subbuild/tmp/eigen-populate-gitclone.cmake:39 (message):
      Failed to clone repository: 'https://example.org/eigen.git'


    FAILED: [code=1] eigen-populate-download
    cd _deps && cmake -P eigen-populate-gitclone.cmake
    ninja: build stopped: subcommand failed.

    CMake Error at /usr/share/cmake-3.25/Modules/FetchContent.cmake:1616 (message):
      Build step for eigen failed: 1
    Call Stack (most recent call first):
      /usr/share/cmake-3.25/Modules/FetchContent.cmake:1970 (FetchContent_Populate)
      CMakeLists.txt:8 (FetchContent_MakeAvailable)
"""


@pytest.mark.parametrize(
    ("log", "name", "where"),
    [
        (SETUP_PY, "cuda-home-unset", "setup.py:6"),
        (OUTSIDE, "python-exception", "tools/generate.py:3"),
        (CMAKE, "cmake-package-missing", "cmake/Dependencies.cmake:12"),
        (INCLUDED, "compiler-error", "csrc/ops.cpp:1"),
        (NVCC, "compiler-error", "csrc/kernel.cu:12"),
        (NOTE, "missing-include", "csrc/twice.cpp:4"),
        (FETCH, "network-in-build", "CMakeLists.txt:8"),
    ],
)
def test_the_line_that_a_log_names(log: str, name: str, where: str) -> None:
    found = diagnose_log(dedent(log).strip().splitlines(), load_failures())
    assert found.name == name
    assert found.where
    assert f"{found.where.file}:{found.where.line}" == where


def diagnosis(*, file: str = "", find: str = "") -> Diagnosis:
    where = SourceLocation(file=file, line=2, column=3) if file else None
    return Diagnosis(found=Found.LINE, lines=(), total=1, where=where, find=find)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for name, text in {
        "build/setup.py": "import a\n  b = 'nosuchlib'\n",
        "build/build/lib/copy.py": "nosuchlib",
        "inputs/source/core.cpp": "one\n  two\n",
        "outside.py": "import a\n  secret\n",
    }.items():
        path = tmp_path / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "job/build/link.py").symlink_to(tmp_path / "job/outside.py")
    return tmp_path / "job"


@pytest.mark.parametrize(
    ("found", "where"),
    [
        (diagnosis(file="setup.py"), ("setup.py", 2, 3, "  b = 'nosuchlib'")),
        (diagnosis(file="/mnt/x/build/setup.py"), ("setup.py", 2, 3, "  b = 'nosuchlib'")),
        (diagnosis(file="/mnt/x/inputs/source/core.cpp"), ("core.cpp", 2, 3, "  two")),
        (diagnosis(find="nosuchlib"), ("setup.py", 2, 8, "  b = 'nosuchlib'")),
        (diagnosis(file="core.cpp", find="absent"), ("core.cpp", 2, 3, "  two")),
    ],
)
def test_the_line_as_it_is_shown(
    job: Path, found: Diagnosis, where: tuple[str, int, int, str]
) -> None:
    span = blamed_line(found, job, "/mnt/x")
    assert span
    assert (span.file, span.line, span.column, span.text) == where


@pytest.mark.parametrize("file", ["../outside.py", "link.py", "/etc/passwd", "gone.py", "."])
def test_no_line_from_elsewhere(job: Path, file: str) -> None:
    """A log and the directory of a job are a stranger's."""
    assert blamed_line(diagnosis(file=file), job, "/mnt/x") is None
