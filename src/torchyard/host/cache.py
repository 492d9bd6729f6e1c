"""torchyard's own cache directory."""

import os
from contextlib import suppress
from pathlib import Path


def cache_folder(name: str) -> Path | None:
    """Return a folder of torchyard's cache; None if it can't be made."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = base / "torchyard" / name
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return path.absolute()
    return None
