"""Check that a wheel contains its licence and every file of a source directory, including data.

python scripts/check_wheel.py WHEEL [SOURCE]
"""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(wheel: Path, source: Path) -> int:
    expected = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packed = {name for name in names if ".dist-info/" not in name}
    faults = [f"lacks {name}" for name in sorted(expected - packed)]
    faults += [f"has {name}, which {source.name}/ has not" for name in sorted(packed - expected)]
    if not any(".dist-info/licenses/LICENSE" in name for name in names):
        faults.append("lacks its licence")
    for fault in faults:
        print(f"{wheel.name}: {fault}")
    print(f"{wheel.name}: {len(packed)} files, {wheel.stat().st_size:,} bytes")
    return int(bool(faults))


if __name__ == "__main__":
    where = ROOT / (sys.argv[2] if len(sys.argv) > 2 else "src")  # noqa: PLR2004
    sys.exit(main(Path(sys.argv[1]), where))
