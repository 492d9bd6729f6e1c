"""A second environment on top of an installed one: the same files, found in another way."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from torchyard.smoke.installation import Installation


def make_overlay(installation: Installation, folder: Path, sites: Sequence[Path]) -> Installation:
    """Create an empty environment that finds its modules in other folders."""
    name = f"python{'.'.join(installation.version.split('.')[:2])}"
    if Path(installation.prefix, "lib", f"{name}t").is_dir():  # without the GIL
        name = f"{name}t"
    own = folder / "lib" / name / "site-packages"
    for place in (own, folder / "bin"):
        place.mkdir(parents=True, exist_ok=True)
    original = Path(installation.prefix, "pyvenv.cfg")
    (folder / "pyvenv.cfg").write_bytes(original.read_bytes())
    python = folder / "bin/python"
    python.symlink_to(os.path.realpath(installation.python))
    (own / "overlay.pth").write_text("".join(f"{site}\n" for site in sites), encoding="utf-8")
    return msgspec.structs.replace(
        installation, prefix=str(folder), python=str(python), sites=tuple(map(str, sites))
    )
