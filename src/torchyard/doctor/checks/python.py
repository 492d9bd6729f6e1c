"""Checks of Python: headers, version, and what the tree's build needs in it."""

from collections.abc import Iterator

from packaging.requirements import Requirement

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.doctor.ranges import is_in_range, range_of
from torchyard.errors import HostError, TorchyardError
from torchyard.toolchain.interpreters import (
    best_of,
    find_interpreters,
    objection_to,
    running_interpreter,
)
from torchyard.toolchain.python_project import PYPROJECT, read_build_system
from torchyard.toolchain.reading.source_text import read_beginning

_HEADERS = "Python bindings can't be compiled without Python.h"
_PROGRAMS = ("cmake", "ninja")
"""Requirements that are programs: any on PATH will do, which other checks inspect."""


@machine_check("python")
def python_headers(bench: Bench) -> Iterator[Seen | Trouble]:
    """The build's Python has its headers, and a version that the tree accepts."""
    if bench.by_hand:
        yield from _of_shell(bench)
        return
    for tag in bench.demand.pythons:
        version = f"{tag[2]}.{tag[3:]}"
        try:
            found = best_of(tag, find_interpreters())
        except HostError as error:
            yield Trouble(str(error), _HEADERS, f"uv python install {version}")
        else:
            yield Seen(f"Python {found.version} for {tag} ({found.path})")
    if not bench.demand.pythons and bench.demand.compiles:
        try:
            yield Seen(f"Python {running_interpreter().version} for the core")
        except HostError as error:
            yield Trouble(str(error), _HEADERS, "uv python install")


def _of_shell(bench: Bench) -> Iterator[Seen | Trouble]:
    try:
        found = bench.interpreter
    except HostError as error:
        cure = bench.install("python", version="3")
        yield Trouble(str(error), "the build is started by Python", cure)
        return
    short = found.version.rpartition(".")[0]
    wanted = range_of(bench, "python")
    if not is_in_range(found.version, wanted):
        yield Trouble(
            f"Python is {found.version} ({bench.python_program}), and the tree takes {wanted}",
            "setup.py refuses it, or code is invalid in it",
            _other_python(wanted),
        )
    elif objection := objection_to(found):
        what = f"{bench.python_program} {objection}"
        cure = bench.install("python", version=short) or f"uv python install {short}"
        yield Trouble(what, _HEADERS, cure)
    else:
        yield Seen(f"Python {found.version} ({bench.python_program}), headers in {found.include}")


def _other_python(wanted: str) -> str:
    """Return the command that makes an environment with a Python in the range."""
    for other in find_interpreters():
        if is_in_range(other.version, wanted) and not objection_to(other):
            return f"{other.path} -m venv .venv && . .venv/bin/activate"
    return f"uv venv --python '{wanted}' && . .venv/bin/activate"


@machine_check("build-requirements", by_hand=True)
def build_requirements(bench: Bench) -> Iterator[Seen | Trouble]:
    """The requirements of the tree's [build-system] are installed in that Python."""
    if bench.source is None:
        return
    try:
        system = read_build_system(read_beginning(bench.source / PYPROJECT))
        wanted = list(filter(_counts, map(Requirement, system.requires)))
        environment = bench.ask_environment(*(requirement.name for requirement in wanted))
    except TorchyardError:
        return  # reported by `python`; a faulty pyproject.toml is not the machine's fault
    missing = [
        str(requirement)
        for requirement in wanted
        if not is_in_range(environment.versions.get(requirement.name, ""), requirement.specifier)
    ]
    if missing:
        what = f"{environment.program} lacks {', '.join(missing)}"
        why = "builds without isolation import them; without numpy, torch is built without it"
        cure = bench.pip_install(*missing)
        listed = not any(requirement.url for requirement in wanted)  # addresses have no version
        yield Trouble(what, why, cure, fixable=environment.is_own and listed)
    else:
        yield Seen(f"the build requirements of {PYPROJECT} are installed")


def _counts(requirement: Requirement) -> bool:
    """Return whether a requirement applies, and is no program."""
    if requirement.name in _PROGRAMS:
        return False
    return requirement.marker is None or requirement.marker.evaluate()
