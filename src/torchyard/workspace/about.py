"""Facts for a bug report: versions, programs, and whether sandboxes work."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from torchyard.errors import HostError
from torchyard.host.process import capture, own_program
from torchyard.host.system_view import sandbox_fault
from torchyard.version import __version__

_TOOLS = ("git", "uv", "bwrap", "cmake", "ninja", "ccache", "sccache")
_COMPILERS = ("gcc", "g++", "clang", "nvcc", "hipcc")


def about_lines() -> Iterator[str]:
    """Yield lines about torchyard and this machine."""
    yield f"torchyard {__version__} in {Path(__file__).parents[1]}"
    yield f"{platform.python_implementation()} {platform.python_version()} in {sys.prefix}"
    yield f"{platform.platform()}, {' '.join(platform.libc_ver())}, {os.cpu_count()} processors"
    yield f"dependencies: {', '.join(_dependencies())}"
    for name in (*_TOOLS, *_COMPILERS):
        yield f"{name}: {_program(name)}"
    for kind in ("bwrap", "view"):
        yield f"sandbox {kind}: {sandbox_fault(kind) or 'works'}"


def _dependencies() -> Iterator[str]:
    for line in requires("torchyard") or ():
        name = Requirement(line).name
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} missing"


def _program(name: str) -> str:
    path = shutil.which(own_program(name))
    if path is None:
        return "not found"
    try:
        output = capture([path, "--version"], cwd=Path.cwd(), limit=5).strip().splitlines()
    except (HostError, OSError) as error:
        return f"{path}: {error}"
    found = next((line for line in output if re.search(r"\d\.\d", line)), "")
    return f"{found} in {path}"
