"""Names of archive members: unsafe ones, and collisions."""

import re
import unicodedata
from collections.abc import Sequence

from torchyard.package.contents import FaultKind
from torchyard.package.limits import Faults

_UTF8 = 0x800
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def decoded(raw: bytes, flags: int, faults: Faults) -> str:
    """Decode a name; if not ASCII, it must be flagged as UTF-8."""
    if raw.isascii():
        return raw.decode()
    name = raw.decode(errors="backslashreplace")
    if not flags & _UTF8:
        faults.add(FaultKind.NAME, name, "is not ASCII, and not flagged as UTF-8")
    elif raw != name.encode():
        faults.add(FaultKind.NAME, name, "is flagged as UTF-8, but is not")
    return name


def check_member_names(names: Sequence[str], faults: Faults) -> None:
    """Report names that lead outside or collide."""
    for name in names:
        what = wrong_with(name)
        if what:
            faults.add(FaultKind.NAME, name, what)
    _check_pairs(names, faults)


def wrong_with(name: str) -> str:
    """Return why a name is unsafe to unpack, or ""."""
    is_hard = "/." in name or "//" in name or "\\" in name or ":" in name
    if name and name[0] not in "/." and name.isprintable() and not is_hard:
        return ""  # like nearly all names
    path = name.removesuffix("/")
    parts = path.split("/")
    checks = (
        (not path, "has no name"),
        (path.startswith("/") or _DRIVE.match(path), "is an absolute path"),
        (".." in parts, "leads out of the package"),
        ("\\" in path, "has a backslash, which separates directories on some systems"),
        (_CONTROL.search(path), "has control characters"),
        ("" in parts or "." in parts, "has empty parts"),
    )
    return next((what for wrong, what in checks if wrong), "")


def _check_pairs(names: Sequence[str], faults: Faults) -> None:
    seen: set[str] = set()
    folded: dict[str, str] = {}
    folders: set[str] = set()
    for name in names:
        if name in seen:
            faults.add(FaultKind.NAME, name, "is there twice")
            continue
        seen.add(name)
        same = name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()
        other = folded.setdefault(same, name)
        if other != name:
            faults.add(FaultKind.NAME, name, f"is the same as `{other}` if case is ignored")
        folder = name.removesuffix("/").rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    for name in sorted(folders & seen):
        faults.add(FaultKind.NAME, name, "is both a file and a directory")
