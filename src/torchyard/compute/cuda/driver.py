"""NVIDIA's driver; imported only by code that inspects this machine."""

import re
from contextlib import suppress
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture


def nvidia_driver(root: str = "/") -> str:
    """Return the version of NVIDIA's driver, such as `580.65.06`, or an empty string."""
    with suppress(OSError):
        text = Path(root, "proc/driver/nvidia/version").read_text(encoding="utf-8")
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
        return found[1] if found else ""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with suppress(HostError):
        return capture(query, cwd=Path(root)).partition("\n")[0].strip()
    return ""
