"""Calls of py-rattler, each in a process of its own."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.host.entry_points import require_module
from torchyard.host.network_settings import fetching_environment
from torchyard.host.process import capture_done
from torchyard.toolchain import rattler_child


class ChosenBuild(NamedTuple):
    """The version and build string of a package that a solver chose."""

    version: str
    build: str


class RattlerAnswer(msgspec.Struct):
    """What a call found: packages by name, a shell script, or why there is no solution."""

    chosen: dict[str, ChosenBuild] = {}
    script: str = ""
    error: str = ""


def call_rattler(what: str, asked: str | Mapping[str, object], user: str) -> RattlerAnswer:
    """Run one of the commands of `rattler_child`; `user` names what needs py-rattler."""
    require_module("rattler", user)
    text = asked if isinstance(asked, str) else msgspec.json.encode(asked).decode()
    argv = [sys.executable, "-I", rattler_child.__file__, what, text]
    output = capture_done(argv, rattler_child.DONE, cwd=Path("/"), env=fetching_environment())
    return msgspec.json.decode(output or "{}", type=RattlerAnswer)
