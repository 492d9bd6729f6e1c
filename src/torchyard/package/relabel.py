"""What a package says of itself, said anew: tags and versions in names and small text files.

Texts keep all that is not about the label, byte for byte. Nothing here reads or writes a file.
"""

import re
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from torchyard.errors import BuildError, UsageError

_TAG_LINES = re.compile(rb"(?:^Tag:[^\n]*\n?)+", re.MULTILINE)
_VERSION_LINE = re.compile(rb"^(Version:[ \t]*)[^\r\n]*", re.MULTILINE)
_HEAD = re.compile(rb"\A.*?(?=\r?\n\r?\n|\Z)", re.DOTALL)
_ASSIGNED = re.compile(
    rb"""^(__version__(?:[ \t]*:[^=\n]*)?[ \t]*=[ \t]*(?:\w+[ \t]*=[ \t]*)*)"""
    rb"""(["'])([^"'\n]+)\2""",
    re.MULTILINE,
)
_TAG = re.compile(r"\w+(\.\w+)*")


class WheelName(NamedTuple):
    """The parts of a wheel's file name, as they are spelt in it."""

    distribution: str
    version: str
    build: str
    python: str
    abi: str
    platform: str

    @classmethod
    def parse(cls, file_name: str) -> "WheelName":
        parts = file_name.removesuffix(".whl").split("-")
        if len(parts) == len(cls._fields) - 1:
            parts.insert(2, "")
        if len(parts) != len(cls._fields) or not file_name.endswith(".whl"):
            msg = f"`{file_name}` is no name of a wheel"
            raise BuildError(
                msg, hint="they look like torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"
            )
        return cls(*parts)

    @property
    def stem(self) -> str:
        """How the wheel's own folders begin: `torch-2.13.0+cpu`."""
        return f"{self.distribution}-{self.version}"

    @property
    def tag(self) -> str:
        return f"{self.python}-{self.abi}-{self.platform}"

    def __str__(self) -> str:
        return "-".join(filter(None, self)) + ".whl"

    def retagged(self, python: str, abi: str, platform: str) -> "WheelName":
        """The name with other tags; what is empty stays. Several of a kind have dots between."""
        for tag in filter(None, (python, abi, platform)):
            if not _TAG.fullmatch(tag):
                msg = f"`{tag}` is no tag of a wheel"
                raise UsageError(msg, hint="tags look like cp312, abi3 or manylinux_2_28_x86_64")
        return self._replace(
            python=python or self.python,
            abi=abi or self.abi,
            platform=platform or self.platform,
        )


def wheel_text(text: bytes, tag: str) -> bytes:
    """WHEEL with other tags, at the place of the old ones."""
    several = product(*(part.split(".") for part in tag.split("-")))
    lines = "".join(f"Tag: {one}\n" for one in sorted(map("-".join, several))).encode()
    new, count = _TAG_LINES.subn(lines, text.replace(b"\r\n", b"\n"), count=1)
    if not count:
        msg = "WHEEL has no line `Tag:`"
        raise BuildError(msg, hint="it is no wheel that an installer would take; build it anew")
    return new


def metadata_text(text: bytes, version: str) -> bytes:
    """METADATA with another version."""
    head = _HEAD.match(text)
    end = head.end() if head else 0
    new, count = _VERSION_LINE.subn(_keeping_start(version), text[:end])
    if count != 1:
        msg = f"METADATA has {count} lines `Version:`, and should have one"
        raise BuildError(msg, hint="it is no wheel that an installer would take; build it anew")
    return new + text[end:]


def version_text(text: bytes, old: str, new: str) -> bytes:
    """A `version.py` with another version, if it tells the old one, with or without what follows +.

    A version that is of something else is left alone.
    """
    public = Version(old).public

    def replaced(found: re.Match[bytes]) -> bytes:
        try:
            told = Version(found[3].decode(errors="replace"))
        except InvalidVersion:
            return found[0]
        return found[1] + found[2] + new.encode() + found[2] if told.public == public else found[0]

    return _ASSIGNED.sub(replaced, text)


def build_version_text(text: bytes, old: str, new: str) -> bytes:
    """The same for the file `build-version` of libtorch, which has nothing else in it."""
    told = text.strip().decode(errors="replace")
    return (
        text.replace(told.encode(), new.encode())
        if told.partition("+")[0] == old.partition("+")[0]
        else text
    )


def _keeping_start(value: str) -> Callable[[re.Match[bytes]], bytes]:
    return lambda found: found[1] + value.encode()


def new_version(old: str, version: str | None, local: str | None) -> str:
    """A whole new version, or the old one with another local part; an empty one is left out."""
    asked = version if version is not None else _with_local(old, local or "")
    try:
        return str(Version(asked))
    except InvalidVersion as error:
        msg = f"`{asked}` is no version of a Python package"
        raise UsageError(msg, hint="versions look like 2.14.0, 2.14.0rc1 or 2.14.0+cpu") from error


def _with_local(old: str, local: str) -> str:
    public = old.partition("+")[0]
    return f"{public}+{local}" if local else public
