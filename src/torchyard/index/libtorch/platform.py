"""The platform of a libtorch zip."""

from torchyard.config.tables import load_tables
from torchyard.index.entry import Entry, cell_of


def zip_platform(file: str) -> str:
    """Return the platform in the name of a libtorch zip; without one, it is Linux."""
    platforms = load_tables().platforms
    for platform in sorted(platforms, key=lambda name: len(platforms[name].zip), reverse=True):
        word = platforms[platform].zip
        if platform in file or (word and f"-{word}-" in file):
            return platform
    return "macos-x86_64" if "-macos-" in file else "linux-x86_64"


def zip_platforms(entry: Entry) -> list[str]:
    """Return the platforms of a zip: by its cell, else by its name."""
    cell = cell_of(entry)
    return [cell.platform if cell else zip_platform(entry.file)]
