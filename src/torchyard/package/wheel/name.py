"""The file names of wheels, and the tags in them."""

import re
from typing import NamedTuple

from packaging.utils import BuildTag, canonicalize_name, parse_wheel_filename

from torchyard.errors import CheckError, UsageError
from torchyard.package.versions import parse_version, unquoted

SUFFIX = ".whl"
ABI3 = "abi3"
"""The ABI tag of wheels with Python's stable ABI."""
_TAG = re.compile(r"\w+(\.\w+)*")


class WheelTags(NamedTuple):
    """The first two tags of a wheel."""

    python: str
    abi: str


def wheel_tags(python: str) -> WheelTags:
    """Return the tags of a Python of `data/pythons.toml`: `cp313t` is the ABI of `cp313`."""
    return WheelTags(python.removesuffix("t"), python)


def wheel_stem(name: str, version: str) -> str:
    """Return the prefix of a wheel's name and folders: `my_torch-1.2.0+cpu`."""
    return f"{canonicalize_name(name).replace('-', '_')}-{parse_version(version)}"


def wheel_name(name: str, version: str, tags: WheelTags, platform_tag: str, number: int = 0) -> str:
    """Return the name of a wheel, without a build number of 0."""
    build = f"-{number}" if number else ""
    return f"{wheel_stem(name, version)}{build}-{tags.python}-{tags.abi}-{platform_tag}{SUFFIX}"


def wheel_build(file_name: str) -> BuildTag:
    """Return the build tag of a wheel, by which installers choose between equal ones."""
    _, _, build, _ = parse_wheel_filename(file_name)
    return build


def is_wheel_name(file_name: str) -> bool:
    return file_name.endswith(SUFFIX)


def split_tags(file_name: str) -> list[str]:
    """Return the Python, ABI and platform tags in a wheel's name; fewer if some are missing."""
    return file_name.removesuffix(SUFFIX).rsplit("-", maxsplit=3)[1:]


class WheelName(NamedTuple):
    """The parts of a wheel's file name as written, except that `%2B` is a plus."""

    distribution: str
    version: str
    build: str
    python: str
    abi: str
    platform: str

    @classmethod
    def parse(cls, file_name: str) -> "WheelName":
        parts = unquoted(file_name).removesuffix(SUFFIX).split("-")
        if len(parts) == len(cls._fields) - 1:
            parts.insert(2, "")
        if len(parts) != len(cls._fields) or not is_wheel_name(file_name):
            msg = f"`{file_name}` is not the name of a wheel"
            raise CheckError(
                msg, hint="they look like torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"
            )
        return cls(*parts)

    @property
    def tag(self) -> str:
        return f"{self.python}-{self.abi}-{self.platform}"

    def __str__(self) -> str:
        return "-".join(filter(None, self)) + SUFFIX

    def retagged(self, python: str, abi: str, platform: str) -> "WheelName":
        """Return the name with other tags; empty ones stay. Dots separate several of a kind."""
        for tag in filter(None, (python, abi, platform)):
            if not _TAG.fullmatch(tag):
                msg = f"`{tag}` is not a tag of a wheel"
                raise UsageError(msg, hint="tags look like cp312, abi3 or manylinux_2_28_x86_64")
        return self._replace(
            python=python or self.python,
            abi=abi or self.abi,
            platform=platform or self.platform,
        )
