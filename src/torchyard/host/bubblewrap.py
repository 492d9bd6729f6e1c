"""Programs of this machine that are run in a sandbox of bubblewrap, because of what they handle.

They see the system read-only, and nothing of its users: no home directories, no sockets, no
processes. They can write to the directories they are given, and reach the network only if they
need it.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture
from torchyard.host.secrets import secret_files

_HIDDEN = ("/home", "/root", "/run", "/tmp", "/var/tmp", "/mnt", "/media", "/srv")  # noqa: S108

_NAMES = ("/etc/resolv.conf",)
"""Files of the system that may be links into a directory that is hidden."""


def confined(
    argv: Sequence[str],
    *,
    cwd: Path,
    writable: Iterable[Path] = (),
    readable: Iterable[Path] = (),
    network: bool = False,
) -> list[str]:
    """Return the command that runs a program in a sandbox; as it is, if there is no bubblewrap."""
    if not can_confine():
        return list(argv)
    bwrap = [*_confinement(), *(["--share-net"] if network else [])]
    own = {Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2]}
    real = {Path(os.path.realpath(name)) for name in _NAMES}
    for path in sorted({*own, *real, *readable}):
        if path.exists() and _is_hidden(path):
            bwrap += ["--ro-bind", str(path), str(path)]
    for path in sorted({cwd, *writable}):
        bwrap += ["--bind", str(path), str(path)]
    bwrap += hide_secret_files()
    return [*bwrap, "--chdir", str(cwd), "--", *argv]


def hide_secret_files() -> list[str]:
    """Return the options of bubblewrap that hide the caller's files with secrets."""
    return [word for path in secret_files() for word in ("--ro-bind", os.devnull, path)]


@cache
def can_confine() -> bool:
    """Return whether bubblewrap is installed and may make sandboxes."""
    if shutil.which("bwrap") is None:
        return False
    try:
        capture([*_confinement(), "--", "true"], cwd=Path("/"))
    except HostError:
        return False
    return True


def _confinement() -> list[str]:
    bwrap = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all", "--cap-drop", "ALL"]
    bwrap += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    for name in _HIDDEN:
        if Path(name).is_dir() and not Path(name).is_symlink():
            bwrap += ["--tmpfs", name]
    return bwrap


def _is_hidden(path: Path) -> bool:
    return any(path.is_relative_to(name) for name in _HIDDEN)
