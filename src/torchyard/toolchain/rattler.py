"""Calls of py-rattler, each in a process of its own."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.host.bubblewrap import confined
from torchyard.host.entry_points import require_module
from torchyard.host.network_settings import (
    fetching_environment,
    installer_files,
    installer_variables,
    local_paths,
)
from torchyard.host.process import capture_done
from torchyard.toolchain import rattler_child

_LOGIN = ".rattler/credentials.json"
"""The file below the home directory with names and passwords for channels."""


class ChosenBuild(NamedTuple):
    """The version and build string of a package that a solver chose."""

    version: str
    build: str


class RattlerAnswer(msgspec.Struct):
    """What a call found: packages by name, a shell script, or why there is no solution."""

    chosen: dict[str, ChosenBuild] = {}
    script: str = ""
    error: str = ""


def call_rattler(
    what: str,
    asked: str | Mapping[str, object],
    user: str,
    *,
    writable: Path | None = None,
    readable: Iterable[Path] = (),
) -> RattlerAnswer:
    """Run one of the commands of `rattler_child`; `user` names what needs py-rattler.

    With a `writable` directory, it can write to that only, whatever packages say. It is one, as
    files can't be linked from one directory of a sandbox to another.
    """
    require_module("rattler", user)
    text = asked if isinstance(asked, str) else msgspec.json.encode(asked).decode()
    argv = [sys.executable, "-I", rattler_child.__file__, what, text]
    if writable:
        texts = (text for name, text in installer_variables().items() if name != "PATH")
        files = (path for _, path in (*local_paths(texts), *installer_files()))
        login = Path(os.environ.get("RATTLER_AUTH_FILE") or Path.home() / _LOGIN)
        argv = confined(argv, cwd=writable, readable=(*readable, *files, login), network=True)
    output = capture_done(argv, rattler_child.DONE, cwd=Path("/"), env=fetching_environment())
    return msgspec.json.decode(output or "{}", type=RattlerAnswer)
