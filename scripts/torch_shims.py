"""Write the table of torch's C functions: each with the release that first exports it.

Of the wheels in the caller's index only the parts that have symbols are read, about 50 MB each.
"""

import sys
from pathlib import Path

from torchyard.app.progress import no_meter
from torchyard.app.torch_releases import TorchRange, find_releases
from torchyard.checks.compat.stable_names import SHIMS
from torchyard.checks.compat.table import load_compat_table, torch_libraries
from torchyard.host.files import data_path
from torchyard.host.remote_file import RemoteFile
from torchyard.package.wheel.parts import WheelParts

OLDEST = "2.6"
PYTHON, MACHINE = "3.11", "x86_64"
HEADER = f"""\
# The C functions of torch, which extensions of its stable ABI use (torch/csrc/stable/c/shim.h and
# torch/csrc/inductor/aoti_torch/c/shim.h), each with the first release whose wheel for {MACHINE}
# exports it. Written by scripts/torch_shims.py; what {OLDEST} has may be older.
"""


def main() -> None:
    """Read the wheels from the oldest on."""
    asked = TorchRange.parse(f"{OLDEST}..")
    first: dict[str, str] = {}
    for wheel in reversed(find_releases(asked, PYTHON, MACHINE, 1, no_meter)):
        parts = WheelParts(RemoteFile(wheel.url))
        minor = ".".join(wheel.version.split(".")[:2])
        for member in torch_libraries(parts.libraries()):
            names = (name.decode(errors="backslashreplace") for name in parts.exports(member))
            for name in filter(load_compat_table().is_shim, names):
                first.setdefault(name, minor)
        print(f"torch {minor}: {list(first.values()).count(minor)} new functions", file=sys.stderr)
    lines = (f"{name} {release}\n" for name, release in sorted(first.items()))
    Path(data_path(SHIMS)).write_text(f"{HEADER}{''.join(lines)}", encoding="utf-8")


if __name__ == "__main__":
    main()
