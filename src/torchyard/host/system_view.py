"""What a sandbox of bubblewrap shows of this machine: the system, and nothing of its users.

Only what is named here can be seen: no home directories, no sockets, no temporary files, no other
processes. Files of the system that are not world-readable are hidden, too: without this, steps
could read those of the user that runs them, and all if that is root.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

from torchyard.errors import HostError
from torchyard.host.process_tree import signal_group

_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    *("/nix/store", "/gnu/store", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices"),
)

NO_PART = frozenset(
    ("boot", "dev", "home", "media", "mnt", "proc", "root", "run", "srv", "sys", "tmp")
)
"""What is no part of a system that is shown in place of this one."""

_SECRETS = {"/etc": 99, "/opt": 3, "/usr/local": 3}
"""Where the system has files that are not world-readable, and how deep these are looked for.

Toolkits below `/opt` and `/usr/local` have ten thousands of files.
"""

NAME_SERVERS = "/etc/resolv.conf"
"""What a network needs; it may be a link to where nothing is shown."""

_IN_ROOT = "TORCHYARD_IN_ROOT"
ROOT_MARK = {_IN_ROOT: "1"}
"""The variable of processes that torchyard starts in a root to look at it from within."""

_NAMESPACES = ("--die-with-parent", "--new-session", "--unshare-all", "--cap-drop", "ALL")
_ORDINARY = ("--unshare-user", "--uid", "1000", "--gid", "1000")
_KERNEL = ("sys", "irq", "bus", "fs", "acpi", "scsi", "sysrq-trigger", "mtrr")
"""What root may write to below `/proc` without any capability."""

_LIMITS = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "10000"),
}
"""Settings of kernels: the value that keeps users from making namespaces, and one that does not."""

_MOUNTS = (
    *("--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/mnt"),  # noqa: S108
    *(w for name in _KERNEL for w in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")),
)

BubblewrapKind = Literal["view", "bwrap"]

_PROC, _CONTAINER = ("--proc", "/proc"), ("--ro-bind", "/proc", "/proc")
_NAMED = ("--hostname", "torchyard")
_WAYS: dict[BubblewrapKind, tuple[tuple[str, ...], ...]] = {
    "view": ((), ("--unshare-user",)),
    "bwrap": ((*_PROC, *_NAMED), (*_CONTAINER, *_NAMED), _CONTAINER),
}
"""The options by which each kind can be had, the best first; the others are for containers.

There, root may make a user namespace, but mount nothing without one. A new `/proc` would show what
the container hides, so its own is shown: steps see the names of its processes, and nothing else.
Some containers let nothing change the machine's name.
"""


def isolated() -> list[str]:
    """Return the command of a sandbox with namespaces of its own, and without capabilities.

    Root is an ordinary user in it: programs expect root to have capabilities.
    """
    return [find_bwrap(), *_NAMESPACES, *(_ORDINARY if os.geteuid() == 0 else ())]


def system_view(root: str | None = None, absent: Sequence[str] = ()) -> list[str]:
    """Return bwrap's options that show the system, or the one in a root, without some paths."""
    if root:
        return [*_shown_root(root), *_way("bwrap"), *_MOUNTS, *without(absent, root)]
    bwrap = [*_shown_system(), *_way("bwrap"), *_MOUNTS, *without(absent)]
    for path, is_folder in _private_files():
        if not _is_below(Path(path), absent):
            bwrap += ["--tmpfs", path] if is_folder else ["--ro-bind", os.devnull, path]
    return bwrap


def without(absent: Sequence[str], root: str = "") -> list[str]:
    """Return bwrap's options that show all of some directories but the absent paths in them.

    The cost grows with the square of the number of entries: it is for directories that have few.
    A link in a root is left as it is: for this machine it may lead to files of its users.
    """
    bwrap: list[str] = []
    for parent in sorted({str(Path(path).parent) for path in absent}):
        if root and os.path.realpath(f"{root}{parent}") != os.path.realpath(root) + parent:
            continue
        bwrap += ["--tmpfs", parent]
        for entry in sorted(Path(f"{root}{parent}").iterdir()):
            if (shown := f"{parent}/{entry.name}") in absent:
                continue
            is_link = entry.is_symlink()
            bwrap += ["--symlink", str(entry.readlink())] if is_link else ["--ro-bind", str(entry)]
            bwrap.append(shown)
        bwrap += ["--remount-ro", parent]
    return bwrap


def machine_view(free: str = "") -> list[str]:
    """Return the command that shows the machine as it is; `free`, a path in /mnt, is left out."""
    bwrap = [*whole_machine(), "--tmpfs", "/mnt"]
    for path in sorted(Path("/mnt").iterdir()) if Path("/mnt").is_dir() else ():
        if str(path) != free:
            bwrap += ["--dev-bind-try", str(path), str(path)]
    return bwrap


def whole_machine() -> list[str]:
    """Return the command that shows all of the machine, to be followed by what is different."""
    return [find_bwrap(), "--die-with-parent", *_way("view"), "--dev-bind", "/", "/"]


def parts_of_root(root: str) -> list[Path]:
    """Return the directories and links at the top of a root that are shown as the system."""
    return [path for path in sorted(Path(root).iterdir()) if path.name not in NO_PART]


def read_only(
    paths: Iterable[str], hidden: Iterable[str] = (), *, root: str | None = None
) -> list[str]:
    """Return bwrap's options that show more paths of this machine, without directories in them.

    Those in directories of the system are shown already, unless it is the system in a root.
    """
    system = () if root else _SYSTEM
    named = {path for one in paths for path in (Path(one).absolute(), Path(one).resolve())}
    shown: list[Path] = []
    for path in sorted(named):
        if os.access(path, os.R_OK) and not _is_below(path, (*system, *shown)):
            shown.append(path)
    bwrap = [word for path in shown for word in ("--ro-bind", str(path), str(path))]
    for path in sorted(Path(one).resolve() for one in hidden):
        if path.is_dir() and _is_below(path, shown):
            bwrap += ["--tmpfs", str(path)]
    return bwrap


def is_of_system(path: str) -> bool:
    """Return whether a path is in a directory of the system."""
    return _is_below(Path(os.path.normpath(path)), _SYSTEM)


@cache
def own_paths() -> tuple[str, ...]:
    """Return the directories that this Python and torchyard are in."""
    given = {str(Path(path).absolute()) for path in os.environ.get("PYTHONPATH", "").split(":")}
    paths = sys.path if sys.flags.safe_path else sys.path[1:]  # the first is the caller's directory
    found = {path for path in paths if path not in given and Path(path).is_dir()}
    return tuple(sorted({*found, sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}))


def sandbox_fault(kind: BubblewrapKind = "bwrap") -> str:
    """Return why bubblewrap makes no sandboxes of a kind here, or ""."""
    return _tried(kind)[1]


def _way(kind: BubblewrapKind) -> tuple[str, ...]:
    return _tried(kind)[0]


@cache
def _tried(kind: BubblewrapKind) -> tuple[tuple[str, ...], str]:
    """Return the options by which a kind can be had here, or the usual ones and why they fail."""
    faults = []
    for way in _WAYS[kind]:
        try:
            if kind == "view":
                command = [find_bwrap(), *way, "--dev-bind", "/", "/", "--tmpfs", "/mnt"]
            else:
                command = [*isolated(), *_shown_system(), *way, *_MOUNTS]
            fault = bubblewrap_fault(command)
        except HostError as error:
            fault = str(error)
        if not fault:
            return way, ""
        faults.append(fault)
    return _WAYS[kind][0], faults[0]


def bubblewrap_fault(bwrap: Sequence[str]) -> str:
    """Return why bubblewrap can't start a program with such options, or "".

    In a sandbox whose `/proc` is that of a container, its first process ends with an error, and its
    second one waits for that forever. So nothing may wait for the end of its output.
    """
    with os.fdopen(os.memfd_create("said"), "w+b") as output:
        child = subprocess.Popen(
            [*bwrap, "--", "true"],
            cwd="/",
            env={"PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,
        )
        code = child.wait()
        signal_group(child.pid, signal.SIGKILL)
        output.seek(0)
        text = output.read().decode(errors="replace").strip()
        return f"exit code {code}: {text}" if code else ""


LOST = "their steps can use the network, and see and change each other's files"
"""What it means that jobs run without a sandbox."""


def without_sandbox() -> str:
    """Return the note for builds whose jobs run without a sandbox: what is lost, and why."""
    return f"jobs run without a sandbox: {LOST}; bubblewrap does not work here: {sandbox_fault()}"


def sandbox_cure(system: Path = Path("/")) -> str:
    """Return what lets bubblewrap make sandboxes here; tests pass another proc."""
    if shutil.which("bwrap") is None:
        return "install the package `bubblewrap`"
    for name, (refuses, allows) in _LIMITS.items():
        path = system / "proc/sys" / name
        if path.is_file() and path.read_text(encoding="ascii").strip() == refuses:
            return f"sysctl -w {name.replace('/', '.')}={allows}"
    options = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    return f"let this user make namespaces: start the container with {options}"


def in_root() -> bool:
    """Return whether this process was started in a root by the torchyard outside of it."""
    return _IN_ROOT in os.environ


def find_bwrap() -> str:
    """Return the path of bwrap on the caller's PATH, since a job's own may lack it."""
    found = shutil.which("bwrap")
    if found is None:
        msg = "bubblewrap is not installed: without `bwrap`, a job can't have its own view of files"
        raise HostError(msg, hint="install the package `bubblewrap`, or add `bwrap` to PATH")
    return found


def _shown_root(root: str) -> list[str]:
    bwrap: list[str] = []
    for path in parts_of_root(root):
        top = f"/{path.name}"
        if path.is_symlink():
            bwrap += ["--symlink", str(path.readlink()), top]
        elif path.is_dir():
            bwrap += ["--ro-bind", str(path), top]
    return bwrap


@cache
def _shown_system() -> tuple[str, ...]:
    bwrap: list[str] = []
    for top in map(Path, _SYSTEM):
        if top.is_symlink():
            bwrap += ["--symlink", str(top.readlink()), str(top)]
        elif top.is_dir():
            bwrap += ["--ro-bind", str(top), str(top)]
    return tuple(bwrap)


@cache
def _private_files() -> tuple[tuple[str, bool], ...]:
    """Return the files of the system that are not world-readable, and whether each is a folder."""
    found = (found for top, depth in _SECRETS.items() for found in _private(top, depth))
    return tuple((path, stat.S_ISDIR(status.st_mode)) for path, status in found)


def _private(folder: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what others than its owner and group can't read below a directory."""
    with suppress(PermissionError, FileNotFoundError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            needed = stat.S_IROTH | stat.S_IXOTH if is_folder else stat.S_IROTH
            if status.st_mode & needed != needed:
                yield entry.path, status
            elif is_folder and depth > 1:
                yield from _private(entry.path, depth - 1)


def _is_below(path: Path, tops: Iterable[str | Path]) -> bool:
    return any(path.is_relative_to(top) for top in tops)
