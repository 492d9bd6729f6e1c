"""Baselines for the benchmarks of checking, repairing and retagging wheels.

python wheels.py inflate WHEEL              unpack every member, and take its SHA-256
python wheels.py repack WHEEL OUT           unpack it and pack it again
python wheels.py bare WHEEL OUT MEMBER      copy it; unpack, change and pack one library
"""

import os
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import deflate
from isal import igzip_lib

_LEVEL = 6
_SMALL = 1 << 20
_IN, _OUT = 64 << 10, 256 << 10


def inflate(wheel: Path) -> None:
    """Unpack every member with the fastest library, and compute its SHA-256; compare nothing."""
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    with wheel.open("rb") as file:
        for info in entries:
            head = os.pread(file.fileno(), 30, info.header_offset)
            skipped = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            place = info.header_offset + 30 + skipped
            digest = sha256()
            if info.file_size <= _SMALL:
                data: bytes | bytearray = os.pread(file.fileno(), info.compress_size, place)
                if info.compress_type == zipfile.ZIP_DEFLATED:
                    data = deflate.deflate_decompress(data, max(info.file_size, 1))
                digest.update(data)
                continue
            stream = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE)
            while not stream.eof:
                data = b""
                if stream.needs_input:
                    data = os.pread(file.fileno(), _IN, place)
                    place += len(data)
                digest.update(stream.decompress(data, _OUT))


def bare(wheel: Path, out: Path, member: str) -> None:
    """Copy a wheel, and unpack, change and pack one of its libraries."""
    subprocess.run(["cp", wheel, out / wheel.name], check=True)
    with zipfile.ZipFile(wheel) as archive, wheel.open("rb") as file:
        info = archive.getinfo(member)
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
    what, wheel, *others = sys.argv[1:]
    match what:
        case "inflate":
            inflate(Path(wheel))
        case "repack":
            repack(Path(wheel), Path(others[0]))
        case _:
            bare(Path(wheel), Path(others[0]), others[1])
