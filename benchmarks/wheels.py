"""The bare work that repairs of a wheel are compared with.

python wheels.py repack WHEEL OUT           unpack it and pack it again
python wheels.py bare WHEEL OUT MEMBER      copy it; unpack, change and pack one library
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import deflate

_LEVEL = 6


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
    what, wheel, out, *members = sys.argv[1:]
    if what == "repack":
        repack(Path(wheel), Path(out))
    else:
        bare(Path(wheel), Path(out), *members)
