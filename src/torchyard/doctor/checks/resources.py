"""Checks of what a machine has: processors, memory, disk, open files."""

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.doctor.table import machine_table
from torchyard.host.cache import can_run_in, runnable_folder
from torchyard.host.files import FULL
from torchyard.host.machine import processors
from torchyard.host.memory import limiting_file, read_memory
from torchyard.model.quantity import show_count, show_size
from torchyard.model.severity import Severity

_RUN = "test programs and test libraries can't be loaded"
_KILLED = "the kernel kills the compiler: `Killed signal terminated program cc1plus`"


@machine_check("memory", outside=True)
def memory(bench: Bench) -> Iterator[Seen | Trouble]:
    """Memory that the machine, and every cgroup around the build, allow it.

    Jobs of torchyard with less than in `[requirements]` run fewer compilers. A build by hand needs
    the peak of a compiler for each of MAX_JOBS, or each processor.
    """
    total = read_memory(bench.system).total
    yield Seen(f"{show_size(total)} of memory, {show_count(processors(), 'processor')}")
    if not bench.by_hand:
        if total < bench.demand.memory:
            what = f"a job needs {show_size(bench.demand.memory)} of memory, as the file says"
            what = f"{what}, and there are {show_size(total)}"
            why = "fewer compilers run at once, and a large link may not fit"
            yield Trouble(what, why, _more(bench, 0), Severity.WARNING)
        return
    kind = "torch" if bench.demand.is_torch else "other"
    each = machine_table().trees[kind].memory_bytes
    given = bench.env.get("MAX_JOBS", "")
    jobs = int(given) if given.isdecimal() and int(given) else processors()
    fit = total // each
    if fit == 0:
        what = f"one compiler needs up to {show_size(each)}, and there are {show_size(total)}"
        yield Trouble(what, _KILLED, _more(bench, each * 2))
    elif fit < jobs:
        what = (
            f"{show_count(jobs, 'compiler')} at once need up to {show_size(each * jobs)}, "
            f"and there are {show_size(total)}"
        )
        yield Trouble(what, _KILLED, f"export MAX_JOBS={fit}", Severity.WARNING)


def _more(bench: Bench, needed: int) -> str:
    """Return the command that raises a cgroup's limit; "" if the machine has no more memory."""
    file = limiting_file(bench.system)
    return f"echo {max(needed, bench.demand.memory)} > {file}" if file else ""


@machine_check("disk", outside=True)
def disk(bench: Bench) -> Iterator[Seen | Trouble]:
    """Free disk for the build, as in `[requirements]`, and permission to run programs there."""
    folder = _existing(Path(bench.demand.work))
    free = shutil.disk_usage(folder).free
    needs = {**bench.demand.disk} or {"any job": FULL}
    if bench.by_hand and not (folder / "build").is_dir():  # an existing build has used a part of it
        kind = "torch" if bench.demand.is_torch else "other"
        needs["the build"] = machine_table().trees[kind].disk_bytes
    short = {name: size for name, size in needs.items() if size > free}
    if not short:
        yield Seen(f"{show_size(free)} of disk are free in {folder}")
    for name, size in short.items():
        yield Trouble(
            f"{name} needs {show_size(size)} of disk in {folder}, and {show_size(free)} are free",
            "a full disk ends the build hours later, while linking",
            "torchyard store gc" if _shares_disk(bench.demand.store, folder) else "",
        )
    yield from _unrunnable(bench, folder)


def _shares_disk(store: str, folder: Path) -> bool:
    """Return whether removing a store's results frees space in a directory."""
    return bool(store) and _existing(Path(store)).stat().st_dev == folder.stat().st_dev


def _existing(path: Path) -> Path:
    """Return a directory, or its nearest existing parent."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.is_dir())


def _unrunnable(bench: Bench, folder: Path) -> Iterator[Seen | Trouble]:
    """Yield directories mounted with `noexec`: CMake runs programs to test a compiler."""
    if not can_run_in(folder):
        cure = "" if bench.by_hand else "name a directory on another disk: --work DIR"
        yield Trouble(f"no program in {folder} may be run: it is mounted with `noexec`", _RUN, cure)
    if not can_run_in(Path(gettempdir())):
        what = f"no program in {gettempdir()} may be run: it is mounted with `noexec`"
        other = runnable_folder()
        yield Seen(f"{what}; {other} is used") if other else Trouble(what, _RUN, "export TMPDIR=")


@machine_check("temporary-directory", by_hand=True)
def temporary_directory(bench: Bench) -> Iterator[Seen | Trouble]:
    """TMPDIR exists, is writable, and has space: compilers write assembler code there."""
    named = bench.env.get("TMPDIR", "")
    folder = Path(named or "/tmp")  # noqa: S108 - as compilers do
    why = "compilers write their intermediate files there"
    cure = "unset TMPDIR" if named else f"export TMPDIR={Path.home() / '.cache'}"
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        yield Trouble(f"the temporary directory {folder} can't be written to", why, cure)
        return
    needed, free = machine_table().limits.temporary_bytes, shutil.disk_usage(folder).free
    if free < needed:
        what = f"the temporary directory {folder} has {show_size(free)} left"
        yield Trouble(what, why, cure, Severity.WARNING)


@machine_check("open-files", outside=True)
def open_files(bench: Bench) -> Iterator[Seen | Trouble]:
    """A process may open enough files: linkers open all objects of a library at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = machine_table().limits.open_files
    if 0 <= soft < needed:
        yield Trouble(
            f"a process may open {soft} files",
            "linkers open all objects of a library at once: `Too many open files`",
            f"ulimit -n {needed}" if hard < 0 or hard >= needed else "",
            Severity.ERROR if bench.by_hand else Severity.WARNING,
        )
