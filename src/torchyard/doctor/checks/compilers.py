"""Checks of the host compilers."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.doctor.ranges import is_in_range, range_of
from torchyard.errors import HostError
from torchyard.host.cache import runnable_folder
from torchyard.host.timed_run import TimedRun
from torchyard.toolchain.compilers import Compiler, query_compiler
from torchyard.toolchain.variables import SYSTEM_PATH

_PLAIN = """
#include <exception>
int main() { try { throw std::exception(); } catch (std::exception &) { return 0; } return 1; }
"""
_OPENMP = "#include <omp.h>\nstatic int threads = omp_get_max_threads();" + _PLAIN
_CONFIGURE = "CMake tries the compilers first, and ends if one fails"


@machine_check("compiler")
def host_compiler(bench: Bench) -> Iterator[Seen | Trouble]:
    """The C and C++ compilers exist, belong together, and the tree accepts them.

    They compile, link and run a small program in the build's environment.
    """
    if not bench.demand.compiles:
        return
    try:
        found = bench.compiler
        kind, version = query_compiler(found.cxx)
    except HostError as error:
        named = [name for name in ("CC", "CXX") if bench.by_hand and bench.env.get(name)]
        hint = error.diagnostics[0].hint  # a job's compiler is named by the file
        cure = f"unset {' '.join(named)}" if named else hint or bench.install("compiler")
        yield Trouble(str(error), _CONFIGURE, cure)
        return
    if (kind, version) != (found.kind, found.version):
        yield Trouble(
            f"the C compiler is {found.kind} {found.version} ({found.cc}), "
            f"and the C++ compiler {kind} {version} ({found.cxx})",
            "objects of both are linked together, each with the libraries of its own compiler",
            _matching(bench, found),
        )
        return
    wanted = range_of(bench, kind)
    if not is_in_range(version, wanted):
        yield Trouble(
            f"the compiler is {kind} {version} ({found.cxx}), and the tree takes {wanted}",
            "configuring ends with an error, or compiling with one about C++",
            _other(bench, wanted, kind) or bench.install("compiler"),
        )
        return
    done = _with_openmp(bench, found)
    if done.code:
        done = _tried(bench, found, _PLAIN)
    if done.code:
        yield Trouble(
            f"{found.cxx} makes no program that runs: {_last(done)}",
            _CONFIGURE,
            _unpolluted(bench) or bench.install("compiler"),
        )
        return
    yield Seen(f"{kind} {version} ({found.cc}, {found.cxx})")


@machine_check("openmp")
def host_openmp(bench: Bench) -> Iterator[Seen | Trouble]:
    """The compiler has OpenMP; without it, torch runs on one thread."""
    if not (bench.by_hand or bench.demand.blas):  # extensions may not need it
        return
    try:
        found = bench.compiler
    except HostError:
        return  # reported by `compiler`
    done = _with_openmp(bench, found)
    if not done.code:
        runtime = "libgomp" if found.kind == "gcc" else "libomp"
        yield Seen(f"OpenMP of {found.kind} ({runtime})")
    elif not _tried(bench, found, _PLAIN).code:
        yield Trouble(
            f"{found.cxx} has no OpenMP: {_last(done)}",
            "CMake turns USE_OPENMP off without an error, and torch runs on one thread",
            bench.install("openmp" if found.kind == "clang" else "compiler"),
        )


def _with_openmp(bench: Bench, found: Compiler) -> TimedRun:
    return bench.once("openmp", lambda: _tried(bench, found, _OPENMP, "-fopenmp"))


def _tried(bench: Bench, found: Compiler, text: str, *options: str) -> TimedRun:
    """Compile, link and run a program."""
    path = {} if bench.by_hand else {"PATH": SYSTEM_PATH}
    with TemporaryDirectory(prefix="torchyard-doctor-", dir=runnable_folder()) as folder:
        source, program = Path(folder, "probe.cpp"), Path(folder, "probe")
        source.write_text(text, encoding="utf-8")
        done = bench.run(found.cxx, *options, source, "-o", program, env=bench.env | path)
        return done if done.code else bench.run(program)


def _last(done: TimedRun) -> str:
    """Return the compiler's most informative line: the first error, or else the last line."""
    errors = [line for line in done.lines if "error" in line.lower() or "cannot find" in line]
    return (errors or list(done.lines) or [done.signal or f"exit code {done.code}"])[0]


def _matching(bench: Bench, found: Compiler) -> str:
    for other in bench.other_compilers():
        if (other.kind, other.version) == (found.kind, found.version):
            return f"export CC={shlex.quote(other.cc)} CXX={shlex.quote(other.cxx)}"
    return "unset CC CXX"


def _other(bench: Bench, wanted: str, kind: str) -> str:
    """Return the command that selects a compiler of this machine in the range."""
    for other in bench.other_compilers():
        if other.kind == kind and is_in_range(other.version, wanted):
            if bench.by_hand:
                return f"export CC={shlex.quote(other.cc)} CXX={shlex.quote(other.cxx)}"
            return f'set `compiler = "{other.cc}"` in [toolchain]'
    return ""


def _unpolluted(bench: Bench) -> str:
    """Return the command that unsets variables that change the compilers' search paths."""
    names = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX")
    given = [name for name in names if bench.by_hand and bench.env.get(name)]
    return f"unset {' '.join(given)}" if given else ""
