"""From logs to the lines that name the cause.

Those of gcc, ld, CMake, ninja, make, nvcc and pip are modelled on real runs; the others on memory.
"""

import time
from collections.abc import Iterator
from textwrap import dedent

import pytest

from torchyard.config.failures import load_failures
from torchyard.model.failure import Diagnosis, Found, Kind
from torchyard.run import diagnose, log_text
from torchyard.run.diagnose import LIMIT, diagnose_log
from torchyard.run.failure_patterns import FailurePatterns, Match

FAILURES = load_failures()

CONFIGURE = """\
-- The CXX compiler identification is GNU 12.2.0
-- Performing Test COMPILER_SUPPORTS_AVX512
-- Performing Test COMPILER_SUPPORTS_AVX512 - Failed
CMake Warning at CMakeLists.txt:8 (find_package):
  By not providing "Findhip.cmake" in CMAKE_MODULE_PATH this project has
  asked CMake to find a package configuration file provided by "hip", but
  CMake did not find one.

  Could not find a package configuration file provided by "hip" with any
  of the following names:

    hipConfig.cmake


-- Configuring done
-- Build files have been written to: /build
"""

COMMAND = (
    "/usr/bin/c++ -DUSE_ERROR -Werror=return-type -Wno-error=pedantic "
    + " ".join(f"-I/src/third_party/part{i}/include" for i in range(40))
    + " -o CMakeFiles/a.dir/error.cpp.o -c /src/error.cpp"
)


def tell(*parts: str) -> Diagnosis:
    lines = "".join(dedent(part) for part in parts).splitlines(keepends=True)
    telling = diagnose_log(lines, FAILURES)
    assert telling.total == len(lines)
    assert len(telling.lines) <= LIMIT
    for line in telling.lines:  # the numbers are those of the log
        assert line.text.strip(" …")[:40] in lines[line.number - 1]
    return telling


def texts(telling: Diagnosis) -> list[str]:
    return [line.text for line in telling.lines]


def progress(first: int, last: int, total: int) -> str:
    return "".join(f"[{i}/{total}] {COMMAND}\n" for i in range(first, last + 1))


def test_ninja_and_gcc_amid_parallel_output() -> None:
    telling = tell(
        CONFIGURE,
        progress(1, 200, 900),
        f"FAILED: CMakeFiles/a.dir/error.cpp.o \n{COMMAND}\n",
        """\
        /src/error.cpp: In function 'int f()':
        /src/error.cpp:4:66: error: 'undeclared_name' was not declared in this scope
            4 | int f(){ return undeclared_name; }
              |                 ^~~~~~~~~~~~~~~
        """,
        progress(201, 230, 900),
        f"FAILED: b.o\n{COMMAND}\nb.cpp:1:1: error: another one\n",
        "ninja: build stopped: subcommand failed.\n",
        'Traceback (most recent call last):\n  File "setup.py", line 9, in <module>\n    main()\n',
        "subprocess.CalledProcessError: Command '['cmake']' returned non-zero exit status 1.\n",
    )
    assert telling.found == Found.NINJA
    assert telling.name == "compiler-error"
    assert texts(telling) == [
        "FAILED: CMakeFiles/a.dir/error.cpp.o",
        "/src/error.cpp: In function 'int f()':",
        "/src/error.cpp:4:66: error: 'undeclared_name' was not declared in this scope",
        "    4 | int f(){ return undeclared_name; }",
        "      |                 ^~~~~~~~~~~~~~~",
    ]
    assert not telling.elsewhere(network=True)


def test_template_error_with_hundreds_of_notes() -> None:
    notes = "".join(
        f"/usr/include/c++/12/bits/stl_iterator.h:{i}:5: note: candidate: 'template<class T> "
        f"bool operator<(const T&, const T&)'\n {i} |     operator<(const T& error,\n"
        for i in range(300)
    )
    telling = tell(
        progress(1, 3, 9),
        f"FAILED: a.o\n{COMMAND}\n",
        """\
        In file included from /usr/include/c++/12/bits/stl_algobase.h:71,
                         from /src/a.cpp:1:
        /usr/include/c++/12/bits/stl_algo.h:1809:14:   required from 'void std::sort(T, T)'
        /src/a.cpp:4:37:   required from here
        /usr/include/c++/12/bits/predefined_ops.h:45:23: error: no match for 'operator<'
           45 |       { return *__it1 < *__it2; }
              |                ~~~~~~~^~~~~~~~
        """,
        notes,
        "/src/a.cpp:9:1: error: 'x' was not declared in this scope\n",
        progress(4, 5, 9),
        "ninja: build stopped: subcommand failed.\n",
    )
    assert telling.name == "compiler-error"
    assert "/src/a.cpp:4:37:   required from here" in texts(telling)
    assert any("no match for 'operator<'" in text for text in texts(telling))
    assert not any("note:" in text for text in texts(telling))
    assert "'x' was not declared" in texts(telling)[-1]


def test_undefined_reference() -> None:
    telling = tell(
        progress(1, 8, 9),
        """\
        FAILED: b
        : && /usr/bin/c++ -Werror b.o -o b   && :
        /usr/bin/ld: b.o: in function `main':
        b.cpp:(.text+0x5): undefined reference to `at::error()'
        collect2: error: ld returned 1 exit status
        ninja: build stopped: subcommand failed.
        """,
    )
    assert telling.name == "undefined-reference"
    assert texts(telling)[1:] == [
        "/usr/bin/ld: b.o: in function `main':",
        "b.cpp:(.text+0x5): undefined reference to `at::error()'",
    ]
    assert telling.fix
    assert "at::error()" in telling.fix


def test_a_specific_failure_beats_a_general_one() -> None:
    telling = tell(
        "FAILED: lib/libtorch_cuda.so\nc++ -shared\n",
        "/usr/bin/ld: cannot find -lcuda: No such file or directory\n",
        "collect2: error: ld returned 1 exit status\n",
    )
    assert telling.name == "link-lcuda"


def test_cmake_error_after_failed_probes() -> None:
    probes = "".join(
        f"-- Performing Test HAS_ERROR_{i}\n-- Performing Test HAS_ERROR_{i} - Failed\n"
        for i in range(300)
    )
    telling = tell(
        CONFIGURE.partition("-- Configuring done")[0],
        probes,
        """\
        CMake Error at cmake/public/LoadHIP.cmake:10 (find_package):
          By not providing "Findrocrand.cmake" in CMAKE_MODULE_PATH this project has
          asked CMake to find a package configuration file provided by
          "rocrand", but CMake did not find one.

          Add the installation prefix of "rocrand" to CMAKE_PREFIX_PATH.
        Call Stack (most recent call first):
          CMakeLists.txt:100 (include)


        -- Configuring incomplete, errors occurred!
        See also "/build/CMakeFiles/CMakeError.log".
        """,
    )
    assert telling.found == Found.CMAKE
    assert telling.name == "rocm-package-missing"  # though CMake has wrapped its name away
    assert texts(telling)[0] == "CMake Error at cmake/public/LoadHIP.cmake:10 (find_package):"
    assert "Call Stack (most recent call first):" in texts(telling)


def test_cmake_compiler_check_shows_the_error_inside() -> None:
    inside = "".join(f"    Building line {i}\n" for i in range(20))
    telling = tell(
        "CMake Error at CMakeTestCXXCompiler.cmake:60 (message):\n  The C++ compiler\n\n"
        '    "c++"\n\n  is not able to compile a simple test program.\n\n  It fails with:\n\n'
        f"{inside}    /usr/bin/ld: cannot find -lstdc++: No such file or directory\n\n\n"
        "-- Configuring incomplete, errors occurred!\n",
    )
    assert telling.name == "library-missing"
    assert "cannot find -lstdc++" in texts(telling)[-1]


def test_nvcc() -> None:
    telling = tell(
        f"FAILED: k.cu.o\n{COMMAND}\n",
        """\
        k.cu(1): warning #177-D: variable "error" was declared but never referenced
        k.cu(3): error: identifier "undefined_thing" is undefined
          __attribute__((global)) void f(int*p){ p[0]=undefined_thing; }
                                                      ^

        1 error detected in the compilation of "k.cu".
        """,
    )
    assert telling.name == "compiler-error"
    assert texts(telling)[1] == 'k.cu(3): error: identifier "undefined_thing" is undefined'
    telling = tell(
        "FAILED: k.o\nnvcc\n", "nvcc fatal   : Unsupported gpu architecture 'compute_35'\n"
    )
    assert telling.name == "nvcc-unsupported-arch"


@pytest.mark.parametrize(
    "line",
    [
        "c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        f"/bin/sh: line 1: 31337 Killed                  {COMMAND}",
        "Killed",
        "virtual memory exhausted: Cannot allocate memory",
    ],
)
@pytest.mark.parametrize("ninja", [True, False])
def test_killed_for_memory(line: str, ninja: bool) -> None:
    telling = tell(f"FAILED: a.o\n{COMMAND}\n" if ninja else f"{COMMAND}\n", f"{line}\n", "more\n")
    assert telling.kind == Kind.MEMORY
    assert telling.elsewhere(network=False)
    assert all(len(text) < 400 for text in texts(telling))


def test_killed_as_an_exit_code() -> None:
    assert tell("FAILED: [code=137] a.o\nc++\n").kind == Kind.MEMORY
    assert tell("make[2]: *** [build.make:76: a.o] Error 137\n").kind == Kind.MEMORY


def test_disk_full() -> None:
    telling = tell(
        progress(1, 9, 99),
        f"FAILED: a.o\n{COMMAND}\n",
        "/tmp/ccX.s: Assembler messages:\n",
        "/tmp/ccX.s: Fatal error: can't write 11 bytes to .text: 'No space left on device'\n",
    )
    assert telling.kind == Kind.DISK
    assert telling.elsewhere(network=False)


TRACEBACK = """\
Traceback (most recent call last):
  File "/src/setup.py", line 3, in <module>
    main()
    ~~~~^^
  File "/src/setup.py", line 2, in main
    import {module}
ModuleNotFoundError: No module named '{module}'
"""


def test_traceback_in_setup_py() -> None:
    telling = tell("running build_ext\n", TRACEBACK.format(module="torch"), "error: exit 1\n")
    assert telling.found == Found.PYTHON
    assert telling.name == "torch-not-in-build-env"
    assert texts(telling) == [
        '  File "/src/setup.py", line 2, in main',
        "    import torch",
        "ModuleNotFoundError: No module named 'torch'",
    ]


def test_a_traceback_that_follows_from_another() -> None:
    telling = tell(
        TRACEBACK.format(module="nope"),
        """
        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/src/setup.py", line 9, in <module>
            check()
        RuntimeError:
        The detected CUDA version (12.2) mismatches the version that was used to compile
        PyTorch (11.7). Please make sure to use the same CUDA versions.

        make: *** [Makefile:3: all] Error 1
        """,
    )
    assert telling.name == "cuda-mismatch-extension"
    assert "No module named 'nope'" in texts(telling)[2]
    assert texts(telling)[-1].startswith("PyTorch (11.7)")
    assert telling.fix
    assert "toolkit 11.7" in telling.fix


def test_codegen_fails_before_cmake_says_so() -> None:
    telling = tell(
        TRACEBACK.format(module="yaml"),
        "CMake Error at cmake/Codegen.cmake:243 (message):\n",
        "  Failed to get generated_headers list\n",
        "\n\n-- Configuring incomplete, errors occurred!\n",
    )
    assert telling.found == Found.PYTHON
    assert telling.name == "codegen-python-module"


def test_an_ignored_exception_is_ignored() -> None:
    telling = tell(
        "Exception ignored in: <function f at 0x7f>\n",
        TRACEBACK.format(module="torch"),
        "b.cpp:1:1: error: the real one\n",
    )
    assert texts(telling) == ["b.cpp:1:1: error: the real one"]


PIP_RETRY = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by "
    "'NewConnectionError('<HTTPSConnection object at 0x7f>: Failed to establish a new connection: "
    "[Errno -3] Temporary failure in name resolution')': /simple/numpy/\n"
)


def test_pip_without_a_network() -> None:
    telling = tell(
        PIP_RETRY * 5,
        "ERROR: Could not find a version that satisfies the requirement x (from versions: none)\n",
        "ERROR: No matching distribution found for x\n",
    )
    assert telling.kind == Kind.NETWORK
    assert telling.elsewhere(network=True)
    assert not telling.elsewhere(network=False)


def test_pip_that_finds_nothing_that_fits() -> None:
    telling = tell(
        PIP_RETRY,
        "ERROR: Could not find a version that satisfies the requirement numpy==9 "
        "(from versions: 1.26.4, 2.3.1)\n",
        "ERROR: No matching distribution found for numpy==9\n",
    )
    assert telling.name == "pip-no-version"
    assert not telling.elsewhere(network=True)


def test_a_download_that_worked_at_last_is_not_blamed() -> None:
    telling = tell(
        PIP_RETRY,
        "Successfully installed numpy\n" * 20,
        "a.cpp:1:1: error: no such thing\n",
    )
    assert telling.name == "compiler-error"


def test_pip_shows_what_its_child_said() -> None:
    telling = tell(
        """\
          error: subprocess-exited-with-error

          × Preparing metadata (pyproject.toml) did not run successfully.
          │ exit code: 1
          ╰─> [2 lines of output]
              running dist_info
              error: invalid command 'bdist_wheel'
              [end of output]

          note: This error originates from a subprocess, and is likely not a problem with pip.
        error: metadata-generation-failed
        """
    )
    assert texts(telling) == ["      error: invalid command 'bdist_wheel'"]


def test_a_crashing_compiler() -> None:
    crash = """\
        during GIMPLE pass: vect
        /src/kernel.cpp: In function 'void f()':
        /src/kernel.cpp:120:1: internal compiler error: Segmentation fault
        0x7f0 internal_error(char const*, ...)
        Please submit a full bug report.
        """
    assert tell(f"FAILED: a.o\n{COMMAND}\n", crash).name == "compiler-crash"
    once = "The bug is not reproducible, so it is likely a hardware or OS problem.\n"
    telling = tell(f"FAILED: a.o\n{COMMAND}\n", crash, once)
    assert telling.kind == Kind.MACHINE


def test_make() -> None:
    telling = tell(
        f"[ 10%] Building CXX object error.cpp.o\n{COMMAND}\n",
        "/src/a.cpp:3:1: error: 'x' does not name a type\n    3 | x y;\n      | ^\n",
        "[ 20%] Building CXX object b.cpp.o\n",
        "make[2]: *** [CMakeFiles/a.dir/build.make:76: a.cpp.o] Error 1\n",
        "make[1]: *** [CMakeFiles/Makefile2:113: CMakeFiles/a.dir/all] Error 2\n",
        "make: *** [Makefile:91: all] Error 2\n",
    )
    assert telling.found == Found.LINE
    assert texts(telling)[0] == "/src/a.cpp:3:1: error: 'x' does not name a type"
    assert len(telling.lines) == 3


def test_make_and_an_unknown_tool() -> None:
    telling = tell(
        "gperf: the keyword table is upside down\n",
        "make: *** [Makefile:91: all] Error 2\n",
        "cleaning up\n" * 20,
    )
    assert telling.found == Found.WRAPPER
    assert texts(telling) == [
        "gperf: the keyword table is upside down",
        "make: *** [Makefile:91: all] Error 2",
    ]
    assert telling.name is None


def test_ninja_and_an_unknown_tool() -> None:
    telling = tell(f"FAILED: x.h\n{COMMAND}\nthe keyword table is upside down\n", progress(5, 7, 9))
    assert telling.found == Found.NINJA
    assert texts(telling) == ["FAILED: x.h", "the keyword table is upside down"]
    assert telling.kind == Kind.BUILD


def test_a_ninja_inside_another() -> None:
    telling = tell(
        f"FAILED: nccl-stamp\n{COMMAND}\n[1/2] inner\nFAILED: inner.o\nc++\nx.c:1:1: error: inner\n"
    )
    assert texts(telling) == ["FAILED: inner.o", "x.c:1:1: error: inner"]


def test_what_came_before_a_successful_ninja_is_forgotten() -> None:
    telling = tell(
        "probe.c:1:1: error: only a probe\n",
        progress(1, 5, 5),
        "bash: line 1: patchelf: command not found\n",
    )
    assert telling.name == "command-not-found"


def test_the_last_line_is_shown_though_it_only_resembles_a_known_failure() -> None:
    """It was not: the search had stopped at it, and the end of the log began before it."""
    telling = tell("one\ntwo\nbwrap: something new\n")
    assert texts(telling) == ["one", "two", "bwrap: something new"]


def test_a_step_whose_program_is_missing_in_a_sandbox() -> None:
    telling = tell("bwrap: execvp ninjaa: No such file or directory\n")
    assert telling.name == "command-not-found"
    assert texts(telling) == ["bwrap: execvp ninjaa: No such file or directory"]


def test_tests() -> None:
    telling = tell(
        """\
        tests/test_error.py ..F                                          [100%]
        =================================== FAILURES ===================================
            def test_add():
        >       assert add(1, 2) == 4
        E       assert 3 == 4
        E        +  where 3 = add(1, 2)
        tests/test_error.py:5: AssertionError
        =========================== short test summary info ============================
        FAILED tests/test_error.py::test_add - assert 3 == 4
        """
    )
    assert telling.name == "pytest-failed"
    assert telling.line
    assert telling.line.text == "FAILED tests/test_error.py::test_add - assert 3 == 4"
    assert texts(telling)[0] == "E       assert 3 == 4"


def test_colours_and_progress_bars() -> None:
    error = (
        '\x1b[1m\x1b[31mCMake Error: \x1b[0mThe source "/a" does not match the source "/b" '
        "used to generate cache."
    )
    telling = diagnose_log([error], FAILURES)
    assert telling.name == "stale-cmake-cache-path"
    assert texts(telling)[0].startswith("CMake Error: The source")
    telling = diagnose_log(["10%\r50%\r\x1b[01m\x1b[Ka.c:1:1:\x1b[m\x1b[K error: no\r\n"], FAILURES)
    assert texts(telling) == ["a.c:1:1: error: no"]


def test_nothing_known() -> None:
    telling = tell("one\n\ntwo\n", "\n".join(f"word {i}" for i in range(20)), "\n\n")
    assert telling.found == Found.TAIL
    assert texts(telling) == [f"word {i}" for i in range(12, 20)]
    assert telling.kind == Kind.BUILD
    assert not telling.elsewhere(network=True)


def test_an_empty_log() -> None:
    assert diagnose_log([], FAILURES) == Diagnosis(found=Found.TAIL, lines=(), total=0)


def test_a_long_line_is_shown_around_its_error() -> None:
    line = f"/usr/bin/ld: {'_ZN2at' * 300}.o: undefined reference to `needle'"
    telling = diagnose_log([line], FAILURES)
    assert telling.name == "undefined-reference"
    assert "needle" in texts(telling)[0]
    assert len(texts(telling)[0]) < 310


def test_thousands_of_errors_are_not_kept() -> None:
    errors = (f"/src/a.cpp:{i}:1: error: number {i}" for i in range(5000))
    full = "as: x.o: No space left on device"
    telling = diagnose_log(["FAILED: a.o", COMMAND, *errors, full], FAILURES)
    assert telling.name == "disk-full"
    assert len(telling.lines) == LIMIT
    assert texts(telling)[-1] == full


def test_a_long_log_takes_little_time() -> None:
    def log() -> Iterator[str]:
        for i in range(30_000):
            yield f"[{i + 2}/40000] {COMMAND}" if i % 2 else COMMAND
            if i == 20_000:
                yield "FAILED: a.o"
                yield COMMAND
                yield "a.cpp:1:1: error: here"

    start = time.process_time()
    telling = diagnose_log(log(), FAILURES)
    assert time.process_time() - start < 10
    assert [line.number for line in telling.lines] == [20_002, 20_004]


@pytest.mark.parametrize(
    "line",
    [
        "/src/a.cpp:{}:1: fatal error: gone.h: No such file or directory",
        "error: RPC failed; curl 56 timed out, Connection reset {}",
        "CMake Error at CMakeLists.txt:{} (message):",
        "make: *** [Makefile:{}: all] Error 2",
    ],
)
def test_of_a_log_of_nothing_but_errors_the_begin_and_the_end_are_read(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All patterns were tried on each line: two minutes for 60 MB."""
    tried = 0
    search = FailurePatterns.matches

    def counted(self: FailurePatterns, line: str) -> list[Match]:
        nonlocal tried
        tried += 1
        return search(self, line)

    monkeypatch.setattr(FailurePatterns, "matches", counted)
    monkeypatch.setattr(diagnose, "_EFFORT", 50_000)  # a tenth, as the log has
    monkeypatch.setattr(log_text, "END", 20_000)
    full = "as: x.o: No space left on device"
    log = ["FAILED: a.o", COMMAND, *map(line.format, range(10_000)), full]
    telling = diagnose_log(log, FAILURES)
    assert tried < 4_000
    assert telling.total == len(log)
    assert telling.name == "disk-full"
    assert texts(telling)[-1] == full
    assert len(telling.lines) <= LIMIT
