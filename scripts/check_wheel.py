"""Checks that a wheel holds every file of src/torchyard, the data files among them."""

import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"


def main(wheel: Path) -> int:
    expected = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "torchyard").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    for name in sorted(expected - packed):
        print(f"{wheel.name}: lacks {name}")
    for name in sorted(packed - expected):
        print(f"{wheel.name}: has {name}, which src/ has not")
    print(f"{wheel.name}: {len(packed)} files, {wheel.stat().st_size:,} bytes")
    return int(packed != expected)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
