"""A real wheel to measure with, and the bare work that others' promises are compared with.

The wheel is that of `TORCHYARD_BENCH_WHEEL`, or torch 2.13.0 as pip finds it, downloaded once.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import deflate

LIBRARY = "torch/lib/libtorch_python.so"
_LEVEL = 6


def torch_wheel() -> Path:
    """Find the wheel of torch, or get it."""
    given = os.environ.get("TORCHYARD_BENCH_WHEEL")
    if given:
        return Path(given)
    cache = Path(tempfile.gettempdir(), "torchyard-bench")
    if not list(cache.glob("torch-*.whl")):
        options = ("--no-deps", "--only-binary=:all:", "--dest", str(cache))
        command = [sys.executable, "-m", "pip", "download", "torch==2.13.0", *options]
        subprocess.run(command, check=True, stdout=sys.stderr)
    (wheel,) = cache.glob("torch-*.whl")
    return wheel


def bare(wheel: Path, out: Path) -> None:
    """Copy a wheel, and unpack, change and pack one of its libraries."""
    subprocess.run(["cp", wheel, out / wheel.name], check=True)
    with zipfile.ZipFile(wheel) as archive, wheel.open("rb") as file:
        info = archive.getinfo(LIBRARY)
        head = os.pread(file.fileno(), 30, info.header_offset)
        skipped = 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        data = os.pread(file.fileno(), info.compress_size, info.header_offset + skipped)
    library = out / "library.so"
    library.write_bytes(deflate.deflate_decompress(data, info.file_size))
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN:$ORIGIN/x", library], check=True)
    (out / "library").write_bytes(deflate.deflate_compress(library.read_bytes(), _LEVEL))


def repack(wheel: Path, out: Path) -> None:
    """Unpack a wheel and pack it again, as `wheel` does for other tags."""
    command = [sys.executable, "-m", "wheel"]
    subprocess.run([*command, "unpack", wheel, "--dest", out], check=True)
    (folder,) = out.iterdir()
    subprocess.run([*command, "pack", folder, "--dest-dir", out], check=True)


if __name__ == "__main__":
    {"bare": bare, "repack": repack}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
