"""Isolate a job's steps from the machine: not at all, by a view, or by bubblewrap.

In the sandbox `bwrap` the root is read-only, only the job's own directory is writable, there is no
network, and names and paths are the same on every machine. A `view` has only the last of these: the
job's directory has the same path everywhere, so that the build tree of a core is still valid when
it is restored elsewhere.
"""

import shutil
import sys
from pathlib import Path

from torchyard.errors import HostError
from torchyard.model.config import Sandbox
from torchyard.model.step import Step

INSIDE = "/mnt/torchyard"
"""The path of a job's directory, on every machine. Every root has `/mnt`."""

SLOTS = "/mnt/slots"
HOST = "torchyard"


def work_path(sandbox: Sandbox, folder: Path) -> str:
    """Return the path of the job's directory as its steps see it."""
    return str(folder) if sandbox.kind == "none" else INSIDE


def slots_path(sandbox: Sandbox, slots: str | None) -> str | None:
    """Return the path of the jobserver's fifo as the job's steps see it."""
    return SLOTS if slots and sandbox.kind == "bwrap" else slots


def enclose(sandbox: Sandbox, step: Step, folder: Path, slots: str | None) -> list[str]:
    """Return the command that runs a step in the sandbox."""
    if sandbox.kind == "none":
        return list(step.run)
    if sandbox.kind == "view":
        return [*_view(folder), "--chdir", step.cwd, "--", *step.run]
    if sandbox.root is not None and not Path(sandbox.root, "mnt").is_dir():
        msg = f"the root `{sandbox.root}` of the sandbox is no system: it has no /mnt"
        raise HostError(msg, hint="make one with debootstrap, or leave `root` out")
    bwrap = [_bwrap(), "--die-with-parent", "--unshare-all", "--hostname", HOST, "--new-session"]
    bwrap += ["--ro-bind", sandbox.root or "/", "/"]
    bwrap += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/mnt"]  # noqa: S108
    if sandbox.root is None:
        bwrap += [word for path in _own_folders() for word in ("--ro-bind", path, path)]
    bwrap += ["--bind", str(folder), INSIDE, "--chdir", step.cwd]
    if slots:
        bwrap += ["--bind", slots, SLOTS]
    if step.network:
        bwrap += ["--share-net"]
    return [*bwrap, "--", *step.run]


def _own_folders() -> list[str]:
    """Return the directories of torchyard itself that the sandbox would hide."""
    own = {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}
    return sorted(path for path in own if path.startswith(("/tmp/", "/mnt/")))  # noqa: S108


def _view(folder: Path) -> list[str]:
    """Return bwrap's options for the machine as it is, with the job's directory below `/mnt`."""
    bwrap = [_bwrap(), "--die-with-parent", "--dev-bind", "/", "/", "--tmpfs", "/mnt"]
    for path in sorted(Path("/mnt").iterdir()) if Path("/mnt").is_dir() else ():
        if str(path) != INSIDE:
            bwrap += ["--dev-bind-try", str(path), str(path)]
    return [*bwrap, "--bind", str(folder), INSIDE]


def _bwrap() -> str:
    """Return the path of bwrap on the caller's PATH, since a job's own may lack it."""
    found = shutil.which("bwrap")
    if found is None:
        msg = "bubblewrap is not installed: without `bwrap`, a job can't have its own view of files"
        raise HostError(msg, hint="install the package `bubblewrap`, or add `bwrap` to PATH")
    return found
