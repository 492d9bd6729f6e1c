"""The content of a directory as one digest."""

import os
from hashlib import file_digest, sha256
from pathlib import Path

from torchyard.errors import HostError


def tree_digest(folder: str) -> str:
    """Digest the content of a directory: names, executable bits, links and bytes, not times.

    Version control's own files are left out, as they change without the content doing so.
    """
    root = Path(folder)
    if not root.is_dir():
        msg = f"there is no directory `{root}`"
        raise HostError(msg)
    total = sha256()
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if ".git" in relative.parts or (path.is_dir() and not path.is_symlink()):
            continue
        kind, content = _describe(path)
        total.update(f"{kind} {content} {relative.as_posix()}\0".encode())
    return total.hexdigest()


def _describe(path: Path) -> tuple[str, str]:
    if path.is_symlink():
        return "link", path.readlink().as_posix()
    with path.open("rb") as file:
        content = file_digest(file, "sha256").hexdigest()
    return "program" if os.access(path, os.X_OK) else "file", content
