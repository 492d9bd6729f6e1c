"""File names in a simple index: project, version, and tags."""

from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from torchyard.package.wheel.name import is_wheel_name

SDISTS = (".tar.gz", ".zip")


class Named(NamedTuple):
    """A file name that installers can parse. A source distribution has no tags."""

    project: str
    version: Version
    tags: frozenset[Tag] = frozenset()


def read_name(file: str, project: str) -> Named:
    """Parse a name as installers do on the page of a project; ValueError if they can't.

    The version of an old source distribution, `a-1.0-1.tar.gz`, can be found only with its project.
    """
    if is_wheel_name(file):
        name, version, _, tags = parse_wheel_filename(file)
        return Named(name, version, tags)
    stem = file.removesuffix(".tar.gz").removesuffix(".zip")
    for index, sign in enumerate(stem):
        if sign == "-" and canonicalize_name(stem[:index]) == project:
            return Named(project, Version(stem[index + 1 :]))
    return Named(*parse_sdist_filename(file))
