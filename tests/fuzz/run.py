"""Fuzz one of the readers: python tests/fuzz/run.py zip -max_total_time=60.

The first argument is a target, a module `fuzz_…` beside this file. All others go to libFuzzer: its
options (`-help=1` lists them), files that are to be tried once, or a folder for what it learns. The
committed corpus is where it begins, and is only read.
"""

import sys
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # it has no types

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
OPTIONS = ("-timeout=20", "-rss_limit_mb=1024", "-max_len=4096", "-len_control=0")
EVERY = 32
"""Measuring memory takes time: it is done for one of this many inputs, always the same."""


def measured(try_one: Callable[[bytes], None], data: bytes, most: int) -> None:
    """Try an input, and see how much memory that takes."""
    tracemalloc.start()
    try:
        try_one(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= most, f"{len(data)} bytes of input took {peak} bytes of memory"


def unpack_corpus(target: str) -> str:
    """Write the inputs of a target to a new folder, and return it."""
    folder = Path(tempfile.mkdtemp(prefix="corpus-"))
    inputs: dict[str, bytes] = import_module("tests.fuzz.corpus").read_inputs(target)
    for name, data in inputs.items():
        (folder / name).write_bytes(data)
    return str(folder)


def main(target: str, *arguments: str) -> None:
    sys.path.insert(0, str(HERE.parents[1]))
    with atheris.instrument_imports(include=["torchyard.package", "torchyard.checks"]):
        module = import_module(f"tests.fuzz.fuzz_{target}")
        most: int = import_module("tests.fuzz.laws").MOST_MEMORY
        try_one: Callable[[bytes], None] = module.try_one
        try_one(b"")  # tables and libraries that are read once do not count

    def try_input(data: bytes) -> None:
        if zlib.crc32(data) % EVERY:
            try_one(data)
        else:
            measured(try_one, data, most)

    if MEMORY.is_dir():
        tempfile.tempdir = str(MEMORY)  # nothing needs to reach a disk
    files = [argument for argument in arguments if not argument.startswith("-")]
    has_file = any(Path(name).is_file() for name in files)
    folders = [] if has_file else [tempfile.mkdtemp(prefix="fuzz-")] * (not files)
    corpus = [] if has_file else [unpack_corpus(target)]
    itself = f"{sys.executable} {__file__} {target}"  # libFuzzer starts it again, with a shell
    atheris.Setup([itself, *OPTIONS, *arguments, *folders, *corpus], try_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
