"""Fuzz one of the readers: python tests/fuzz/run.py zip -max_total_time=60.

The first argument is a target, a module `fuzz_…` beside this file. All others go to libFuzzer: its
options (`-help=1` lists them), or files that are to be tried once. What it learns goes to a
temporary folder, unless another one is named; the committed corpus is only read.
"""

import sys
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import atheris

MEMORY = Path("/dev/shm")
HERE = Path(__file__).parent
OPTIONS = ("-timeout=10", "-rss_limit_mb=1024", "-max_len=4096", "-len_control=0")
MOST_MEMORY = 24 << 20
"""What reading a small input may take, at the most."""
_EVERY = 32
"""Measuring memory takes time: this is done to one input in so many, always the same ones."""

sys.path.insert(0, str(HERE.parents[1]))


def measured(try_one: Callable[[bytes], None], data: bytes) -> None:
    """Try an input, and see how much memory that takes."""
    tracemalloc.start()
    try:
        try_one(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MOST_MEMORY, f"{len(data)} bytes of input took {peak} bytes of memory"


def main(target: str, *arguments: str) -> None:
    with atheris.instrument_imports(include=["torchyard.package", "torchyard.checks"]):
        module = import_module(f"tests.fuzz.fuzz_{target}")
        try_one: Callable[[bytes], None] = module.try_one
        try_one(b"")  # tables and libraries that are read once do not count

    def try_input(data: bytes) -> None:
        if zlib.crc32(data) % _EVERY:
            try_one(data)
        else:
            measured(try_one, data)

    if MEMORY.is_dir():
        tempfile.tempdir = str(MEMORY)  # nothing needs to reach a disk
    atheris.Setup([sys.argv[0], *OPTIONS, *arguments], try_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
