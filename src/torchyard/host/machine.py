"""What machine this is."""

import os
import platform
import sys
import sysconfig

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
