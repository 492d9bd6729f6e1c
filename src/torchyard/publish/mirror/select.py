"""Selects files of another index, and the variant of the channel that each goes to."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from torchyard.checks.expected import local_compute
from torchyard.errors import UsageError
from torchyard.index.filename import Named, read_name
from torchyard.index.simple.read import FileLink
from torchyard.model.matrix import any_match
from torchyard.model.requirement import MALFORMED
from torchyard.model.values import Value
from torchyard.package.wheel.compatible_tags import runs_on
from torchyard.publish.channel.layout import TAKEN

_PYTHON = re.compile(r"cp[0-9]{2,}t?")
_VARIANT = re.compile(r"[a-z0-9][a-z0-9._-]*")


class MirrorRequest(Value, kw_only=True):
    """Which files to mirror; without Pythons or platforms, those for all of them."""

    selects: tuple[str, ...]
    """Requirements: `torch==2.13.*`."""
    pythons: tuple[str, ...] = ()
    """As tags: `cp312`."""
    platforms: tuple[str, ...] = ()
    """Globs over platform tags: `manylinux*x86_64`."""
    variant: str | None = None
    """For all files, in place of what their versions say."""


class MirrorFile(NamedTuple):
    """A file to mirror."""

    project: str
    link: FileLink
    version: str
    variant: str


def parse_selects(selects: Iterable[str]) -> dict[str, list[Requirement]]:
    """Return requirements by project; a file has to fulfil any of its project's."""
    found: dict[str, list[Requirement]] = {}
    for text in selects:
        try:
            requirement = Requirement(text)
        except MALFORMED as error:
            msg = f"`{text}` is no requirement: {error}"
            raise UsageError(msg, hint="write 'torch==2.13.*'") from error
        if requirement.url or requirement.marker or requirement.extras:
            msg = f"`{text}` has more than a name and versions"
            raise UsageError(msg, hint="write 'torch==2.13.*'")
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def check_python(name: str) -> str:
    """Return the tag of a Python, or raise if it is none."""
    if not _PYTHON.fullmatch(name):
        msg = f"`{name}` is no Python"
        raise UsageError(msg, hint="write --python cp312, or cp313t for a free-threaded one")
    return name


def check_variant(name: str) -> str:
    """Return a name for a variant, which is a folder of pages, or raise if it cannot be one."""
    if not _VARIANT.fullmatch(name) or name in TAKEN:
        msg = f"`{name}` is no name for a variant"
        raise UsageError(msg, hint="write --variant cu130")
    return name


def choose_files(
    project: str,
    files: Iterable[FileLink],
    requirements: Iterable[Requirement],
    wanted: MirrorRequest,
) -> list[MirrorFile]:
    """Yield the files of a project to mirror; pre-releases only if there is nothing else."""
    named = [(link, one) for link, one in _named(project, files) if _fits(one, wanted)]
    versions = {one.version for _, one in named}
    taken = {version for one in requirements for version in one.specifier.filter(versions)}
    return [
        MirrorFile(project, link, str(one.version), _variant(str(one.version), wanted))
        for link, one in named
        if one.version in taken
    ]


def _named(project: str, files: Iterable[FileLink]) -> Iterator[tuple[FileLink, Named]]:
    """Yield files whose names can be parsed; others cannot be installed."""
    for link in files:
        with suppress(ValueError):
            name = read_name(link.file, project)
            if name.project == project:
                yield link, name


def _fits(one: Named, wanted: MirrorRequest) -> bool:
    """Return whether a file is for a requested Python and platform; sdists are for none."""
    if not one.tags:
        return not wanted.pythons and not wanted.platforms
    return any(
        (not wanted.pythons or any(runs_on(python, tag) for python in wanted.pythons))
        and (
            not wanted.platforms
            or tag.platform == "any"
            or any_match(tag.platform, wanted.platforms)
        )
        for tag in one.tags
    )


def _variant(version: str, wanted: MirrorRequest) -> str:
    """Return the requested variant, or the compute of the local version; none means all."""
    return local_compute(version) if wanted.variant is None else wanted.variant
