"""Write the tables of torch's symbols: its C functions, and words in its exports of others' code.

Of the wheels in the caller's index only the parts that have symbols are read, about 50 MB each.
"""

import sys
from pathlib import Path

from torchyard.checks.compat.stable_names import SHIMS, parse_release
from torchyard.checks.compat.table import load_compat_table, torch_libraries
from torchyard.checks.compat.undefined import TORCH_WORDS, leading_word
from torchyard.host.files import data_path
from torchyard.host.remote_file import RemoteFile
from torchyard.package.wheel.parts import WheelParts
from torchyard.workspace.progress import no_meter
from torchyard.workspace.torch_releases import TorchRange, find_releases

OLDEST = "2.0"
OLDEST_SHIMS = "2.6"
PYTHON, MACHINE = "3.11", "x86_64"
HEADER = f"""\
# The C functions of torch, which extensions of its stable ABI use (torch/csrc/stable/c/shim.h and
# torch/csrc/inductor/aoti_torch/c/shim.h), each with the first release whose wheel for {MACHINE}
# exports it. Written by scripts/torch_shims.py; what {OLDEST_SHIMS} has may be older.
"""
WORDS_HEADER = f"""\
# How names begin that torch's wheels for {MACHINE} export, besides those of its own namespaces:
# `fbgemm` of fbgemm::Packed, `mkl` of mkl_blas_dgemm. A name that begins otherwise is not torch's.
# Written by scripts/torch_shims.py, from torch {OLDEST} on.
"""


def main() -> None:
    """Read the wheels from the oldest on."""
    asked = TorchRange.parse(f"{OLDEST}..")
    table = load_compat_table()
    first: dict[str, str] = {}
    words: set[str] = set()
    for wheel in reversed(find_releases(asked, PYTHON, MACHINE, 1, no_meter)):
        parts = WheelParts(RemoteFile(wheel.url))
        minor = ".".join(wheel.version.split(".")[:2])
        for member in torch_libraries(parts.libraries()):
            names = [name.decode(errors="backslashreplace") for name in parts.exports(member)]
            others = (
                one for one in names if not table.is_torchs(one) and not table.is_runtimes(one)
            )
            words.update(map(leading_word, others))
            if parse_release(minor) >= parse_release(OLDEST_SHIMS):
                for name in filter(table.is_shim, names):
                    first.setdefault(name, minor)
        print(f"torch {minor}: {len(first)} functions, {len(words)} words", file=sys.stderr)
    lines = (f"{name} {release}\n" for name, release in sorted(first.items()))
    Path(data_path(SHIMS)).write_text(f"{HEADER}{''.join(lines)}", encoding="utf-8")
    text = "".join(f"{word}\n" for word in sorted(words))
    Path(data_path(TORCH_WORDS)).write_text(f"{WORDS_HEADER}{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
