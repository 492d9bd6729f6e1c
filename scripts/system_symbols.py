"""Write the table of what glibc and others that every system has define, from this machine's."""

import subprocess
from pathlib import Path

from torchyard.checks.compat.undefined import SYSTEM_SYMBOLS
from torchyard.host.files import data_path

PYTHONS = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")
LIBRARIES = (*PYTHONS, "libz.so.1", "libexpat.so.1")
FOLDER = Path("/usr/lib/x86_64-linux-gnu")
GLIBC_2_37_ON = (
    "strlcpy strlcat wcslcpy wcslcat pidfd_spawn pidfd_spawnp pidfd_getpid sched_getattr "
    "sched_setattr openat2 uimaxabs mseal"
)
MATHS_2_40_ON = (
    "acospi asinpi atanpi atan2pi cospi sinpi tanpi exp2m1 exp10m1 log2p1 log10p1 logp1 compoundn "
    "pown powr rootn rsqrt"
)
HEADER = """\
# What libraries that every system has define, without names that begin with an underscore: what
# references without a symbol version may find there. Written by scripts/system_symbols.py from
# glibc 2.36, with what newer ones added.
"""


def main() -> None:
    """Read the libraries of a machine with Debian."""
    lines = []
    for library in LIBRARIES:
        words = ["nm", "-D", "--defined-only", "--without-symbol-versions", str(FOLDER / library)]
        out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        rows = (line.split() for line in out.splitlines())
        names = {row[2] for row in rows if row[1] != "A" and not row[2].startswith("_")}
        if library == "libc.so.6":
            names.update(GLIBC_2_37_ON.split())
        if library == "libm.so.6":
            names.update(
                f"{name}{kind}" for name in MATHS_2_40_ON.split() for kind in ("", "f", "l")
            )
        lines += [f"[{library}]", *sorted(names)]
    Path(data_path(SYSTEM_SYMBOLS)).write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
