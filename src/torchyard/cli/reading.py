"""Reading packages for a command, with the progress of it on a terminal."""

from pathlib import Path

from torchyard.checks.compare import Extension, extension_of
from torchyard.package.contents import Contents
from torchyard.report.progress import Progress

_LIBRARIES = (".so", ".pyd", ".dll", ".dylib")


def read(path: Path) -> Contents:
    """Read a package, and show how far that is if it takes long."""
    from torchyard.package.read import read_package

    size = path.stat().st_size if path.is_file() else 0
    with Progress(f"reading {path.name}", size) as progress:
        return read_package(path, progress=progress)


def read_extension(path: Path) -> Extension:
    """Read what was built against a package: one library, or a package with some."""
    if not path.name.endswith(_LIBRARIES):
        return extension_of(read(path))
    from torchyard.package.library import read_library

    return Extension(path.name, {path.name: read_library(path)})
