"""The inputs that the fuzzer found worth keeping: `TARGET/NAME` in corpus.zip.

`python tests/fuzz/corpus.py TARGET FOLDER` replaces those of a target by the files of a folder.
"""

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ARCHIVE = Path(__file__).with_name("corpus.zip")


def read_inputs(target: str) -> dict[str, bytes]:
    """Return the inputs of a target by name."""
    return {name: data for (owner, name), data in _read_all().items() if owner == target}


def replace_inputs(target: str, folder: Path) -> None:
    """Replace the inputs of a target; equal inputs give an equal archive."""
    kept = {key: data for key, data in _read_all().items() if key[0] != target}
    kept |= {(target, path.name): path.read_bytes() for path in folder.iterdir()}
    with ZipFile(ARCHIVE, "w") as archive:
        for (owner, name), data in sorted(kept.items()):
            archive.writestr(ZipInfo(f"{owner}/{name}"), data, ZIP_DEFLATED)


def _read_all() -> dict[tuple[str, str], bytes]:
    if not ARCHIVE.exists():
        return {}
    with ZipFile(ARCHIVE) as archive:
        names = [tuple(name.split("/")) for name in archive.namelist()]
        return {(owner, name): archive.read(f"{owner}/{name}") for owner, name in names}


if __name__ == "__main__":
    replace_inputs(sys.argv[1], Path(sys.argv[2]))
