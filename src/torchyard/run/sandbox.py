"""Isolate a job's steps from the machine: not at all, by a view, or by bubblewrap.

In the sandbox `bwrap`, steps see the system and their tools read-only, and nothing else of the
machine. They write only to the job's directories, have no capabilities and no network, and names
and paths are the same on every machine. A `view` provides only the paths: the job's directory is
the same everywhere, so that the build tree of a core stays valid when it is restored elsewhere. It
protects nothing. Where the kernel allows no namespaces, steps are traced to provide the view.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import HostError
from torchyard.host.bubblewrap import hide_secret_files
from torchyard.host.fixed_path import fixed_path_program, move_links
from torchyard.host.system_view import (
    NAME_SERVERS,
    isolated,
    machine_view,
    own_paths,
    read_only,
    sandbox_fault,
    system_view,
    without,
)
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.model.config import SandboxKind
from torchyard.model.job_spec import SPEC_FILE
from torchyard.model.step import Step
from torchyard.run.workdir import BUILD, EQUIPMENT, WorkDir
from torchyard.toolchain.root import check_root, name_servers, own_view

INSIDE = "/mnt/torchyard"
"""The path of the steps' directory on every machine; every root has `/mnt`."""

SLOTS = "/mnt/slots"
_SPEC_FILE = f"/mnt/{SPEC_FILE}"
_NOWHERE = "/nonexistent"

_PARTS = frozenset(("bin", "sbin", "include", "lib", "lib64", "libexec", "share"))
"""Names of subdirectories of an installation."""


class Enclosure(NamedTuple):
    """The sandbox of steps.

    `readable` are paths that it shows besides the system, except `hidden` ones; `devices` are
    usable in it. `absent` are directories of the system that steps do not see, and `replaced` are
    substitutes for directories of the system's PATH.
    """

    kind: SandboxKind
    root: str | None = None
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    replaced: Mapping[str, str] = {}


def work_path(kind: SandboxKind, workdir: WorkDir) -> str:
    """Return the steps' path of their directory."""
    return str(workdir.job) if kind == "none" else INSIDE


def tools_path(kind: SandboxKind, workdir: WorkDir) -> str:
    """Return the steps' path of the job's programs."""
    return str(workdir.folder) if kind == "none" else INSIDE


def spec_path(kind: SandboxKind, workdir: WorkDir) -> str:
    """Return the steps' path of the job's spec."""
    return str(workdir.spec_path) if kind == "none" else _SPEC_FILE


def slots_path(kind: SandboxKind, slots: str | None) -> str | None:
    """Return the steps' path of the jobserver's fifo."""
    return SLOTS if slots and kind == "bwrap" else slots


def is_traced(kind: SandboxKind) -> bool:
    """Return whether steps are traced for their view, as the kernel allows no namespaces."""
    return kind == "view" and bool(sandbox_fault("view"))


def watched_path(kind: SandboxKind, workdir: WorkDir) -> str:
    """Return the path of the steps' directory that the kernel shows to other processes."""
    return str(workdir.job) if is_traced(kind) else work_path(kind, workdir)


@contextmanager
def usable_links(kind: SandboxKind, workdir: WorkDir) -> Iterator[None]:
    """Make links in the job's directory valid for steps, and for the kernel."""
    if not is_traced(kind):
        yield
        return
    real = {f"{INSIDE}/{name}": str(workdir.folder / name) for name in EQUIPMENT}
    real |= {INSIDE: str(workdir.job), f"{INSIDE}/{BUILD}": str(workdir.build)}
    for folder in (workdir.job, *(workdir.folder / name for name in EQUIPMENT)):
        move_links(folder, real)
    try:
        yield
    finally:
        move_links(workdir.job, {path: seen for seen, path in real.items()})


def enclose(sandbox: Enclosure, step: Step, workdir: WorkDir, slots: str | None) -> list[str]:
    """Return the command that runs a step in the sandbox."""
    if sandbox.kind == "none":
        return list(step.run)
    if sandbox.kind == "view":
        if is_traced(sandbox.kind):
            view = [fixed_path_program(workdir.folder.parent)]
            view += [word for path in sandbox.absent for word in ("--bind", _NOWHERE, path)]
        else:
            view = [*machine_view(INSIDE), *without(sandbox.absent)]
        return [*view, *_own_directories(workdir), "--chdir", step.cwd, "--", *step.run]
    root = sandbox.root
    bwrap = [*isolated(), *system_view(root, sandbox.absent)]
    if root is not None:
        bwrap += [*own_view(root), *read_only(sandbox.readable, sandbox.hidden, root=root)]
        bwrap += name_servers(root) if step.network else []
    else:
        network = [NAME_SERVERS] if step.network else []
        bwrap += read_only([*own_paths(), *sandbox.readable, *network], sandbox.hidden)
    bwrap += _own_directories(workdir)
    if slots:
        bwrap += ["--bind", slots, SLOTS]
    for device in sandbox.devices:
        bwrap += ["--dev-bind-try", device, device]
    if step.network:
        bwrap += ["--share-net"]
    if root is None:
        bwrap += hide_secret_files()
    return [*bwrap, "--remount-ro", "/", "--chdir", step.cwd, "--", *step.run]


def refuse_open_root(root: str, workdir: WorkDir) -> None:
    """Refuse a root that is no system, or that would show hidden files."""
    check_root(root)
    real = os.path.realpath(root)
    if real == "/" or workdir.folder.is_relative_to(real) or Path.home().is_relative_to(real):
        msg = f"the root `{root}` contains files of this machine's users"
        raise HostError(msg, hint="make one with `torchyard toolchain root`, or remove `root`")


def tool_paths(variables: Mapping[str, str], workdir: WorkDir) -> tuple[str, ...]:
    """Return the installations, anywhere, that the variables of a toolchain name."""
    found = {path for text in variables.values() for path in _installed(text, workdir)}
    return tuple(sorted(path for path in found if not Path(path).is_relative_to(workdir.folder)))


def _installed(text: str, workdir: WorkDir) -> Iterator[str]:
    for word in text.split(":"):
        if not word.startswith("/"):
            continue
        path = Path(word)
        if path.is_relative_to(INSIDE):  # an environment uses a Python elsewhere
            path = workdir.folder / path.relative_to(INSIDE)
        elif path.exists():  # otherwise the directory above would be shown
            yield _prefix(path)
        yield from (_prefix(path / name) for name in ("python", "python3"))


def _prefix(path: Path) -> str:
    """Return the installation that contains a path, if it is recognised."""
    real = path.resolve()
    folder = real if real.is_dir() else real.parent
    if folder.name not in _PARTS:
        return str(folder)
    above = folder.parent
    is_shared = Path.home().is_relative_to(above)  # its other directories are not for steps
    return str(folder if is_shared else above)


def _own_directories(workdir: WorkDir) -> list[str]:
    """Return bwrap's options for the job's directories and spec."""
    bwrap = ["--bind", str(workdir.job), INSIDE, "--ro-bind", str(workdir.spec_path), _SPEC_FILE]
    if not workdir.build.is_relative_to(workdir.job):
        bwrap += ["--bind", str(workdir.build), f"{INSIDE}/{BUILD}"]
    with UntrustedTree(workdir.job) as tree:
        for name in EQUIPMENT:
            tree.make_directory(name)  # bwrap would follow a link there
            bwrap += ["--ro-bind", str(workdir.folder / name), f"{INSIDE}/{name}"]
    return bwrap
