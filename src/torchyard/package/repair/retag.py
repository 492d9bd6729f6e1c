"""Change tags and versions in names and in small text files.

All other text is kept byte for byte. No function here reads or writes files.
"""

import re
from collections.abc import Callable
from itertools import product

from torchyard.errors import CheckError, UsageError
from torchyard.package.versions import is_version, parse_version

_TAG_LINE = re.compile(rb"^Tag:[^\n]*\n?", re.MULTILINE)
_VERSION_LINE = re.compile(rb"^(Version:[ \t]*)[^\r\n]*", re.MULTILINE)
_HEAD = re.compile(rb"\A.*?(?=\r?\n\r?\n|\Z)", re.DOTALL)
_SAME_AS = re.compile(rb"^__version__[ \t]*=[ \t]*([A-Za-z_]\w*)[ \t]*\r?$", re.MULTILINE)
_ASSIGNED = (
    rb"""^((?:%b)(?:[ \t]*+:[^=\n]*+)?+[ \t]*+=[ \t]*+(?:\w++[ \t]*+=[ \t]*+)*+)"""
    rb"""(["'])([^"'\n]+)\2"""
)


def wheel_text(text: bytes, tag: str) -> bytes:
    """Return WHEEL with other tags, at the position of the first old one."""
    several = product(*(part.split(".") for part in tag.split("-")))
    first = _TAG_LINE.search(text)
    if first is None:
        msg = "WHEEL has no line `Tag:`"
        raise CheckError(msg, hint="no installer would accept this wheel: build it again")
    end = "\r\n" if first[0].endswith(b"\r\n") else "\n"
    lines = "".join(f"Tag: {tag}{end}" for tag in sorted(map("-".join, several)))
    return text[: first.start()] + lines.encode() + _TAG_LINE.sub(b"", text[first.end() :])


def metadata_text(text: bytes, version: str) -> bytes:
    """Return METADATA with another version."""
    head = _HEAD.match(text)
    end = head.end() if head else 0
    new, count = _VERSION_LINE.subn(_keeping_start(version), text[:end])
    if count != 1:
        msg = f"METADATA has {count} lines `Version:` instead of one"
        raise CheckError(msg, hint="no installer would accept this wheel: build it again")
    return new + text[end:]


def version_text(text: bytes, old: str, new: str) -> bytes:
    """Return a `version.py` with the old version, with any local part, replaced.

    The version is the value of `__version__`, or of a name assigned to it. Other versions are not
    changed.
    """
    names = b"|".join({b"__version__", *_SAME_AS.findall(text)})

    def replaced(found: re.Match[bytes]) -> bytes:
        same = _is_same(found[3].decode(errors="replace"), old)
        return found[1] + found[2] + new.encode() + found[2] if same else found[0]

    return re.sub(_ASSIGNED % names, replaced, text, flags=re.MULTILINE)


def has_version(text: bytes, version: str) -> bool:
    """Return whether a text contains exactly this version."""
    pattern = rb"(?<![\w.+])%b(?![\w.+])" % re.escape(version.encode())
    return re.search(pattern, text) is not None


def build_version_text(text: bytes, old: str, new: str) -> bytes:
    """Return libtorch's file `build-version`, which contains only the version, with a new one."""
    found = text.strip().decode(errors="replace")
    return text.replace(found.encode(), new.encode()) if _is_same(found, old) else text


def _is_same(found: str, version: str) -> bool:
    """Return whether two versions are equal, apart from their local parts."""
    if not (is_version(found) and is_version(version)):
        return False
    return parse_version(found).public == parse_version(version).public


def _keeping_start(value: str) -> Callable[[re.Match[bytes]], bytes]:
    return lambda found: found[1] + value.encode()


def new_version(old: str, version: str | None, local: str | None) -> str:
    """Return a new version, or the old one with another local part; drop an empty one."""
    wanted = version if version is not None else _with_local(old, local or "")
    return str(parse_version(wanted, UsageError))


def _with_local(old: str, local: str) -> str:
    public = old.partition("+")[0]
    return f"{public}+{local}" if local else public
