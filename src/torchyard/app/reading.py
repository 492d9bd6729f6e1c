"""Reading packages for a command, with the progress of it on a terminal."""

from pathlib import Path

from torchyard.package.contents import Contents
from torchyard.terminal.progress import Progress


def read(path: Path) -> Contents:
    """Read a package, and show how far that is if it takes long."""
    from torchyard.package.read import read_package

    size = path.stat().st_size if path.is_file() else 0
    with Progress(f"reading {path.name}", size) as progress:
        return read_package(path, progress=progress)
