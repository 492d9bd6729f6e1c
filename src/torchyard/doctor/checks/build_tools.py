"""Checks of CMake, ninja and compiler caches."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.doctor.ranges import is_in_range, range_of
from torchyard.doctor.table import machine_table
from torchyard.errors import HostError
from torchyard.model.severity import Severity

_CONFIGURES = "CMake configures the build"
_LAUNCHER = "_COMPILER_LAUNCHER"


@machine_check("cmake")
def cmake(bench: Bench) -> Iterator[Seen | Trouble]:
    """CMake is installed, runs, and has a version that the tree accepts.

    The range is from the tree's `cmake_minimum_required`, and from the table of torch releases.
    Combinations reported as broken are warnings, with their sources.
    """
    pinned = bench.demand.pins.get("cmake", "")
    if not bench.by_hand and not pinned:
        return  # the file's steps may install one
    wanted = range_of(bench, "cmake")
    requirement = f"cmake{wanted}"
    if pinned:
        program, version, where = None, pinned, "as [build] pins it"
    else:
        program = bench.which("cmake")
        if program is None:
            what = "there is no `cmake` on PATH"
            yield Trouble(what, _CONFIGURES, _install(bench, "cmake", requirement))
            return
        try:
            version, where = bench.program_version(program), str(program)
        except HostError as error:
            yield Trouble(str(error), _CONFIGURES, _replaced(bench, wanted, requirement))
            return
    if not is_in_range(version, wanted):
        yield Trouble(
            f"CMake is {version} ({where}), and the tree takes {wanted}",
            "configuring ends with an error about the version of CMake, here or in a submodule",
            _pin(requirement) if pinned else _replaced(bench, wanted, requirement),
        )
        return
    yield Seen(f"CMake {version} ({where})")
    demand = bench.demand
    for report in machine_table().reports_about("cmake", demand.release, demand.computes):
        if is_in_range(version, report.versions):
            what = f"CMake {version} with torch {demand.release} was reported as broken"
            instead = report.instead
            cure = instead and (_pin(instead) if pinned else bench.pip_install(instead))
            yield Trouble(what, report.why, cure, report.severity)


def _pin(requirement: str) -> str:
    return f"set `{requirement}` as a pin in `requires` of [build]"


def _replaced(bench: Bench, wanted: str, requirement: str) -> str:
    """Return the command that puts a CMake in the range first on PATH, or installs it."""
    other = _fitting(bench, wanted)
    if other is not None:
        return f"export PATH={shlex.quote(str(other.parent))}:$PATH"
    return bench.pip_install(requirement)


def _fitting(bench: Bench, wanted: str) -> Path | None:
    """Return a CMake in the range that is not the first on PATH."""
    for program in bench.every("cmake")[1:]:
        try:
            if is_in_range(bench.program_version(program), wanted):
                return program
        except HostError:
            continue
    return None


def _install(bench: Bench, what: str, requirement: str) -> str:
    """Return the command that installs a program: with pip, or else the system's."""
    by_pip = bench.by_hand and bench.takes_pip
    return bench.pip_install(requirement) if by_pip else bench.install(what)


@machine_check("ninja")
def ninja(bench: Bench) -> Iterator[Seen | Trouble]:
    """Ninja is installed and runs."""
    if not bench.by_hand:
        if pinned := bench.demand.pins.get("ninja", ""):
            yield Seen(f"ninja {pinned} (as [build] pins it)")
        return
    program = bench.which("ninja")
    why = "builds by hand are configured for ninja; make is slower"
    if program is None:
        yield Trouble("there is no `ninja` on PATH", why, _install(bench, "ninja", "ninja"))
        return
    try:
        yield Seen(f"ninja {bench.program_version(program)} ({program})")
    except HostError as error:
        yield Trouble(str(error), why, _install(bench, "ninja", "ninja"))


@machine_check("compiler-cache", by_hand=True)
def compiler_cache(bench: Bench) -> Iterator[Seen | Trouble]:
    """Compiler launchers named by variables exist, and can write to their cache."""
    names = {name: text for name, text in bench.env.items() if name.endswith(_LAUNCHER)}
    for name, text in names.items():
        words = shlex.split(text)
        if words and bench.which(words[0]) is None:
            what = f"{name} is `{text}`, which does not exist"
            yield Trouble(what, "every compiler command starts with it", f"unset {name}")
    program = bench.which("ccache") or bench.which("sccache")
    if program is None:
        return
    yield Seen(f"{program.name} ({program})")
    variable = f"{program.name.upper()}_DIR"
    folder = Path(bench.env.get(variable, ""))
    if bench.env.get(variable) and not os.access(folder, os.W_OK):
        what = f"{program.name} can't write to {folder}"
        why = "everything is compiled again each time"
        yield Trouble(what, why, f"unset {variable}", Severity.WARNING)
