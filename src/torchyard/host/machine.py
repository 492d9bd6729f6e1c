"""Facts about this machine: platform, Python, drivers."""

import os
import platform
import sys
import sysconfig

_SYSTEMS = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
_MACHINES = {"AMD64": "x86_64", "ARM64": "arm64"}


def platform_name() -> str:
    """Return this machine's platform, as named in `data/platforms.toml`."""
    system = platform.system()
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return f"{_SYSTEMS.get(system, system.lower())}-{machine}"


def python_name() -> str:
    """Return the running Python, as named in `data/pythons.toml`."""
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"cp{sys.version_info.major}{sys.version_info.minor}{free_threaded}"


def processors() -> int:
    """Return how many processors this process may use, by affinity and control groups."""
    from torchyard.host.cgroups import allowed_processors  # noqa: PLC0415 - few commands need it

    has_affinity = hasattr(os, "sched_getaffinity")
    found = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(found, allowed_processors() or found)


def glibc_version() -> str:
    """Return the version of glibc, such as `2.36`; empty for another C library."""
    name, version = platform.libc_ver()
    return version if name == "glibc" else ""
