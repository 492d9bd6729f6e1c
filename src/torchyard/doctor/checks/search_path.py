"""Checks of PATH: whether the intended programs come first."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.errors import HostError
from torchyard.model.severity import Severity

_PROGRAMS = ("python", "pip", "cmake", "ninja")
_CROSS = "*-conda-*-gcc"
"""Conda's names of compilers."""


@machine_check("path-order", by_hand=True)
def path_order(bench: Bench) -> Iterator[Seen | Trouble]:
    """Programs of the activated environment come first on PATH.

    An environment is activated by VIRTUAL_ENV, or else by CONDA_PREFIX.
    """
    active = bench.env.get("VIRTUAL_ENV") or bench.env.get("CONDA_PREFIX", "")
    if not active:
        return
    folder = Path(active, "bin")
    if not folder.is_dir():
        name = "VIRTUAL_ENV" if bench.env.get("VIRTUAL_ENV") else "CONDA_PREFIX"
        what = f"{name} is {active}, and there is no environment"
        yield Trouble(what, "the build assumes that Python is the environment's", f"unset {name}")
        return
    shadowed = {
        name: taken
        for name in _PROGRAMS
        if (folder / name).exists() and (taken := bench.which(name)) and taken.parent != folder
    }
    for name, taken in shadowed.items():
        yield Trouble(
            f"`{name}` is {taken}, not that of the activated environment {active}",
            "the build uses the first one on PATH, with everything installed beside it",
            f"export PATH={shlex.quote(str(folder))}:$PATH",
            Severity.ERROR if name == "python" else Severity.WARNING,
        )
    if not shadowed:
        yield Seen(f"programs of {active} come first on PATH")


@machine_check("conda-prefix", by_hand=True)
def conda_prefix(bench: Bench) -> Iterator[Seen | Trouble]:
    """No conda environment except Python's is on PATH, and its compilers are used.

    CMake searches the prefix of each directory of PATH for headers and libraries.
    """
    try:
        python = Path(bench.environment.program)
        prefixes = {Path(bench.environment.prefix), Path(bench.environment.base_prefix)}
    except HostError:
        return  # reported by `python`
    prefixes |= set(map(Path.resolve, prefixes))
    for folder in bench.folders:
        prefix = Path(folder).parent
        if (prefix / "conda-meta").is_dir() and not {prefix, prefix.resolve()} & prefixes:
            yield Trouble(
                f"the conda environment {prefix} is on PATH, and Python is {python}",
                "CMake finds its libraries and headers, but other programs do not load them",
                bench.without("PATH", folder),
            )
    prefix = Path(bench.env.get("CONDA_PREFIX") or "/nonexistent")
    compilers = sorted(prefix.glob(f"bin/{_CROSS}"))
    taken = bench.which("gcc")
    if compilers and not bench.env.get("CC") and (taken is None or taken.parent != prefix / "bin"):
        plus = str(compilers[0]).removesuffix("cc") + "++"
        yield Trouble(
            f"{compilers[0]} is in the environment, but the build uses the compiler {taken}",
            "its output is linked with the environment's libraries, which the other one made",
            f"export CC={shlex.quote(str(compilers[0]))} CXX={shlex.quote(plus)}",
            Severity.WARNING,
        )
