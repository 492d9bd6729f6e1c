"""Programs of this machine run in a bubblewrap sandbox, because they handle untrusted data.

They see the system read-only, without its users' data: no home directories, no sockets, no
processes. They can write to the given directories, and reach the network only if they
need it.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from torchyard.host.keyring import leave_session_keyring
from torchyard.host.secrets import secret_files
from torchyard.host.system_view import (
    NAME_SERVERS,
    isolated,
    own_paths,
    read_only,
    sandbox_fault,
    system_view,
)


def confined(
    argv: Sequence[str],
    *,
    cwd: Path,
    writable: Iterable[Path] = (),
    readable: Iterable[Path] = (),
    network: bool = False,
) -> list[str]:
    """Return the command that runs a program in a sandbox; unchanged without bubblewrap."""
    if not can_confine():
        return list(argv)
    readable = tuple(readable)
    leave_session_keyring()
    bwrap = [*isolated(), *system_view(), *(["--share-net"] if network else [])]
    bwrap += read_only([*own_paths(), NAME_SERVERS, argv[0], *map(str, readable)])
    for path in sorted({cwd, *writable}):
        bwrap += ["--bind", str(path), str(path)]
    bwrap += hide_secret_files(except_for=readable)
    return [*bwrap, "--chdir", str(cwd), "--", *argv]


def hide_secret_files(except_for: Iterable[Path] = ()) -> list[str]:
    """Return bubblewrap's options that hide the caller's files with secrets."""
    hidden = sorted({*secret_files()} - {str(path.resolve()) for path in except_for})
    return [word for path in hidden for word in ("--ro-bind", os.devnull, path)]


def can_confine() -> bool:
    """Return whether bubblewrap is installed and can create sandboxes."""
    return not sandbox_fault()
