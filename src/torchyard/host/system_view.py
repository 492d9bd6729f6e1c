"""The view of this machine in a bubblewrap sandbox: the system, without its users' files.

Only paths named here are visible: no home directories, no sockets, no temporary files, no other
processes. Files of the system that are not world-readable are hidden, too: otherwise steps could
read those of the user that runs them, or all if that is root.
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
    *("/var/lib/dpkg/info", "/var/lib/dpkg/status"),  # which package a library is from
)

NO_PART = frozenset(
    ("boot", "dev", "home", "media", "mnt", "proc", "root", "run", "srv", "sys", "tmp")
)
"""Top directories that are not part of a root's system."""

_SECRETS = {"/etc": 99, "/opt": 3, "/usr/local": 3}
"""Directories with system files that are not world-readable, and how deep to search them.

Toolkits below `/opt` and `/usr/local` have tens of thousands of files.
"""

NAME_SERVERS = "/etc/resolv.conf"
"""The file that name resolution needs; it may be a link to a hidden path."""

_IN_ROOT = "TORCHYARD_IN_ROOT"
ROOT_MARK = {_IN_ROOT: "1"}
"""The variable of processes that torchyard starts in a root to inspect it."""

_NAMESPACES = ("--die-with-parent", "--new-session", "--unshare-all", "--cap-drop", "ALL")
_ORDINARY = ("--unshare-user", "--uid", "1000", "--gid", "1000")
_KERNEL = ("sys", "irq", "bus", "fs", "acpi", "scsi", "sysrq-trigger", "mtrr")
"""Files below `/proc` that root may write to without any capability."""

_LIMITS = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "10000"),
}
"""Kernel settings: the value that forbids users to create namespaces, and one that allows it."""

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
"""The options for each kind of sandbox, the best first; the others are for containers.

There, root may create a user namespace, but mount nothing without one. A new `/proc` would show
hidden files, so the container's is shown: steps see only the names of its processes.
Some containers do not allow changing the machine's name.
"""


def isolated() -> list[str]:
    """Return the command of a sandbox with its own namespaces, without capabilities.

    Root is an ordinary user in it, as programs expect root to have capabilities.
    """
    return [find_bwrap(), *_NAMESPACES, *(_ORDINARY if os.geteuid() == 0 else ())]


def system_view(root: str | None = None, absent: Sequence[str] = ()) -> list[str]:
    """Return bwrap's options that show the system, or that of a root, without some paths."""
    if root:
        return [*_shown_root(root), *_way("bwrap"), *_MOUNTS, *without(absent, root)]
    bwrap = [*_shown_system(), *_way("bwrap"), *_MOUNTS, *without(absent)]
    for path, is_folder in _private_files():
        if not _is_below(Path(path), absent):
            bwrap += ["--tmpfs", path] if is_folder else ["--ro-bind", os.devnull, path]
    return bwrap


def without(absent: Sequence[str], root: str = "") -> list[str]:
    """Return bwrap's options that show the directories of absent paths without these paths.

    The cost grows with the square of the number of entries, so it is for small directories.
    A link in a root is left unchanged: on this machine, it may lead to files of its users.
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
    """Return the command that shows the unchanged machine, without `free`, a path in /mnt."""
    bwrap = [*whole_machine(), "--tmpfs", "/mnt"]
    for path in sorted(Path("/mnt").iterdir()) if Path("/mnt").is_dir() else ():
        if str(path) != free:
            bwrap += ["--dev-bind-try", str(path), str(path)]
    return bwrap


def whole_machine() -> list[str]:
    """Return the command that shows all of the machine, to be followed by changes."""
    return [find_bwrap(), "--die-with-parent", *_way("view"), "--dev-bind", "/", "/"]


def parts_of_root(root: str) -> list[Path]:
    """Return the top directories and links of a root that are shown as the system."""
    return [path for path in sorted(Path(root).iterdir()) if path.name not in NO_PART]


def read_only(
    paths: Iterable[str], hidden: Iterable[str] = (), *, root: str | None = None
) -> list[str]:
    """Return bwrap's options that show more paths of this machine, without `hidden` directories.

    Paths of the system are shown already, unless the system is that of a root.
    """
    system = () if root else _SYSTEM
    named = {path for name in paths for path in (Path(name).absolute(), Path(name).resolve())}
    shown: list[Path] = []
    for path in sorted(named):
        if os.access(path, os.R_OK) and not _is_below(path, (*system, *shown)):
            shown.append(path)
    bwrap = [word for path in shown for word in ("--ro-bind", str(path), str(path))]
    for path in sorted(Path(name).resolve() for name in hidden):
        if path.is_dir() and _is_below(path, shown):
            bwrap += ["--tmpfs", str(path)]
    return bwrap


def is_of_system(path: str) -> bool:
    """Return whether a path is in a directory of the system."""
    return _is_below(Path(os.path.normpath(path)), _SYSTEM)


@cache
def own_paths() -> tuple[str, ...]:
    """Return the directories of this Python and of torchyard."""
    given = {str(Path(path).absolute()) for path in os.environ.get("PYTHONPATH", "").split(":")}
    paths = sys.path if sys.flags.safe_path else sys.path[1:]  # the first is the caller's directory
    found = {path for path in paths if path not in given and Path(path).is_dir()}
    return tuple(sorted({*found, sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}))


def sandbox_fault(kind: BubblewrapKind = "bwrap") -> str:
    """Return why bubblewrap can't create sandboxes of a kind here, or ""."""
    return _tried(kind)[1]


def _way(kind: BubblewrapKind) -> tuple[str, ...]:
    return _tried(kind)[0]


@cache
def _tried(kind: BubblewrapKind) -> tuple[tuple[str, ...], str]:
    """Return the working options for a kind, or the usual ones and why they fail."""
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

    In a sandbox with the `/proc` of a container, bubblewrap's first process fails, and its second
    one waits for it forever. So this must not wait for the end of its output.
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
"""What jobs without a sandbox can do."""


def without_sandbox() -> str:
    """Return the note for builds whose jobs run without a sandbox: the risk, and the reason."""
    return f"jobs run without a sandbox: {LOST}; bubblewrap does not work here: {sandbox_fault()}"


def sandbox_cure(system: Path = Path("/")) -> str:
    """Return how to let bubblewrap create sandboxes here; tests pass another proc."""
    if shutil.which("bwrap") is None:
        return "install the package `bubblewrap`"
    for name, (refuses, allows) in _LIMITS.items():
        path = system / "proc/sys" / name
        if path.is_file() and path.read_text(encoding="ascii").strip() == refuses:
            return f"sysctl -w {name.replace('/', '.')}={allows}"
    options = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    return f"let this user create namespaces: start the container with {options}"


def in_root() -> bool:
    """Return whether torchyard started this process in a root."""
    return _IN_ROOT in os.environ


def find_bwrap() -> str:
    """Return the path of bwrap on the caller's PATH, since a job's own may lack it."""
    found = shutil.which("bwrap")
    if found is None:
        msg = "bubblewrap is not installed: jobs need `bwrap` for their own view of files"
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
        elif top.exists():
            bwrap += ["--ro-bind", str(top), str(top)]
    return tuple(bwrap)


@cache
def _private_files() -> tuple[tuple[str, bool], ...]:
    """Return the system's paths that are not world-readable, and whether each is a folder."""
    found = (found for top, depth in _SECRETS.items() for found in _private(top, depth))
    return tuple((path, stat.S_ISDIR(status.st_mode)) for path, status in found)


def _private(folder: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the paths below a directory that are not world-readable."""
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
