"""The names of an archive's members: where they would be unpacked, and over what."""

import re
import unicodedata
from collections.abc import Sequence

from torchyard.package.contents import FaultKind
from torchyard.package.limits import Faults

_UTF8 = 0x800
_HARD = ("/.", "//", "\\", ":")
"""What no name has that needs a closer look, unless it begins or ends with such a thing."""
_DRIVE = re.compile(r"[A-Za-z]:")


def decoded(raw: bytes, flags: int, faults: Faults) -> str:
    """Read a name; one that is not ASCII must say that it is UTF-8."""
    if raw.isascii():
        return raw.decode()
    name = raw.decode(errors="backslashreplace")
    if not flags & _UTF8:
        faults.add(FaultKind.NAME, name, "is not ASCII, and does not say that it is UTF-8")
    elif raw != name.encode():
        faults.add(FaultKind.NAME, name, "is not UTF-8, as it says")
    return name


def check_names(names: Sequence[str], faults: Faults) -> None:
    """Find names that lead elsewhere, and those that would be one file on some system."""
    for name in names:
        what = wrong_with(name)
        if what:
            faults.add(FaultKind.NAME, name, what)
    _check_pairs(names, faults)


def wrong_with(name: str) -> str:
    """What would keep a name from being one file below where the package is unpacked."""
    if (
        name
        and name[0] not in "/."
        and name.isprintable()
        and not any(hard in name for hard in _HARD)
    ):
        return ""
    path = name.removesuffix("/")
    parts = path.split("/")
    if not path:
        return "has no name"
    if path.startswith("/") or _DRIVE.match(path):
        return "is an absolute path"
    if ".." in parts:
        return "leads out of the package"
    if "\\" in path:
        return "has a backslash, which some systems take for a directory's end"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in path):  # noqa: PLR2004 - controls
        return "has control characters"
    if "" in parts or "." in parts:
        return "has empty parts"
    return ""


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
            faults.add(FaultKind.NAME, name, f"is the same as `{other}` where case does not count")
        folder = name.removesuffix("/").rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    for name in sorted(folders & seen):
        faults.add(FaultKind.NAME, name, "is both a file and a directory")
