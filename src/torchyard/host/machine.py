"""What machine this is."""

import os
import platform
import re
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture

_SYSTEMS = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
_MACHINES = {"AMD64": "x86_64", "ARM64": "arm64"}


def platform_name() -> str:
    """This machine's platform, in the words of `data/platforms.toml`."""
    system = platform.system()
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return f"{_SYSTEMS.get(system, system.lower())}-{machine}"


def python_name() -> str:
    """The running Python, in the words of `data/pythons.toml`."""
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"cp{sys.version_info.major}{sys.version_info.minor}{free_threaded}"


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def glibc_version() -> str:
    """This system's glibc, such as `2.36`; nothing if it has another C library."""
    name, version = platform.libc_ver()
    return version if name == "glibc" else ""


def nvidia_driver(root: str = "/") -> str:
    """The version of NVIDIA's driver, such as `580.65.06`; nothing if there is none."""
    with suppress(OSError):
        told = Path(root, "proc/driver/nvidia/version").read_text(encoding="utf-8")
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", told)
        return found[1] if found else ""
    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with suppress(HostError):
        return capture(ask, cwd=Path(root)).partition("\n")[0].strip()
    return ""


def rocm_version(root: str = "/") -> str:
    """The ROCm that is installed where its packages put it, such as `7.2.0`; nothing if none is."""
    with suppress(OSError):
        told = Path(root, "opt/rocm/.info/version").read_text(encoding="utf-8")
        return told.strip().partition("-")[0]
    return ""
