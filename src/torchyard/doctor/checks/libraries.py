"""Checks of LD_LIBRARY_PATH and LD_PRELOAD: which libraries they replace."""

import re
from collections.abc import Iterator
from pathlib import Path

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.doctor.table import machine_table
from torchyard.host.timed_run import TimedRun
from torchyard.model.severity import Severity
from torchyard.model.version import version_numbers

_PROBE = """
import ctypes, sys
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError:
        pass
files = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print("\\n".join(sorted(path for path in files if ".so" in path)))
"""
_SYMBOLS = re.compile(rb"\0(GLIBCXX_|GCC_)(\d+(?:\.\d+)+)(?=\0)")
_LONGEST = 1 << 26


@machine_check("library-path", by_hand=True)
def library_path(bench: Bench) -> Iterator[Seen | Trouble]:
    """LD_LIBRARY_PATH replaces no library: a probe compares loading with and without it."""
    variables = [name for name in ("LD_LIBRARY_PATH", "LD_PRELOAD") if bench.env.get(name)]
    if not variables or bench.python_program is None:
        return
    plain = {name: text for name, text in bench.env.items() if name not in variables}
    meant, loaded = (_probe(bench, env) for env in (plain, bench.env))
    if meant.code:
        return  # reported by `python`
    if loaded.code:
        yield Trouble(
            f"programs do not start with {' and '.join(variables)}: {loaded.lines[-1:] or ''}",
            "compilers, CMake and Python load libraries from there first",
            f"unset {' '.join(variables)}",
        )
        return
    before, after = _files(meant), _files(loaded)
    clean = True
    for name, path in after.items():
        if before.get(name) != path:
            for trouble in _compared(bench, name, path, before.get(name)):
                clean = False
                yield trouble
    if clean:
        yield Seen(f"{' and '.join(variables)} replace no library")


def _probe(bench: Bench, env: dict[str, str]) -> TimedRun:
    table = machine_table()
    python = str(bench.python_program)
    return bench.run(python, "-S", "-c", _PROBE, *table.loaded, *table.own, env=env)


def _files(done: TimedRun) -> dict[str, Path]:
    """Return the libraries that were loaded, by their names without versions."""
    paths = (Path(line) for line in done.lines if line.startswith("/"))
    return {path.name.partition(".so")[0]: path for path in paths}


def _compared(bench: Bench, name: str, path: Path, meant: Path | None) -> Iterator[Trouble]:
    """Yield the problems of a library that is only loaded because of the variables."""
    folder = _listed(bench, path)
    cure = bench.without("LD_LIBRARY_PATH", folder) if folder else "unset LD_PRELOAD"
    if f"{name}.so" in machine_table().own:
        what = f"{path} of another torch is on LD_LIBRARY_PATH"
        yield Trouble(what, "it is loaded instead of the one being built", cure)
    elif meant is not None:
        older = _newest(path) < _newest(meant)
        what = f"{path} is loaded instead of {meant}"
        why = "programs load the library of the first directory that has it"
        if older:
            what = f"{what}, and is older"
            why = "what is compiled here needs symbols that it does not have: `GLIBCXX_… not found`"
        yield Trouble(what, why, cure, Severity.ERROR if older else Severity.WARNING)


def _listed(bench: Bench, path: Path) -> str:
    """Return the directory on LD_LIBRARY_PATH that a library was loaded from."""
    for folder in bench.env.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and Path(folder).resolve() in path.resolve().parents:
            return folder
        if folder and path in map(Path.resolve, Path(folder).glob(f"{path.stem}*")):
            return folder
    return ""


def _newest(path: Path) -> tuple[int, ...]:
    """Return the newest symbol version of a gcc library; () for other libraries."""
    try:
        with path.open("rb") as file:
            found = _SYMBOLS.findall(file.read(_LONGEST))
    except OSError:
        return ()
    return max((version_numbers(version.decode()) for _, version in found), default=())
