"""Which files of another index are wanted, and which variant of a channel they go to."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from torchyard.checks.expected import local_compute
from torchyard.errors import UsageError
from torchyard.index.entry import WHOLE
from torchyard.index.read_simple import Link
from torchyard.model.matrix import any_match
from torchyard.model.values import Value

_ABI3 = "abi3"
_VARIANT = re.compile(r"[a-z0-9][a-z0-9._-]*")
_TAKEN = (WHOLE, "conda", "libtorch", "packages", "states")


class Wanted(Value, kw_only=True):
    """A subset of an index. Without Pythons or platforms, those of all are wanted."""

    selects: tuple[str, ...]
    """Requirements: `torch==2.13.*`."""
    pythons: tuple[str, ...] = ()
    """As tags: `cp312`."""
    platforms: tuple[str, ...] = ()
    """Globs over platform tags: `manylinux*x86_64`."""
    variant: str | None = None
    """For all files, in place of what their versions say."""


class Chosen(NamedTuple):
    """A file that is wanted."""

    project: str
    link: Link
    version: str
    variant: str


class _Named(NamedTuple):
    link: Link
    version: Version
    tags: frozenset[Tag]
    """A source distribution has none."""


def parse_selects(selects: Iterable[str]) -> dict[str, list[Requirement]]:
    """Requirements by the projects that they are about; any of a project's may be fulfilled."""
    found: dict[str, list[Requirement]] = {}
    for text in selects:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            msg = f"`--select {text}` is no requirement: {error}"
            raise UsageError(msg, hint="write --select 'torch==2.13.*'") from error
        if requirement.url or requirement.marker or requirement.extras:
            msg = f"`--select {text}` has more than a name and versions"
            raise UsageError(msg, hint="write --select 'torch==2.13.*'")
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def check_variant(name: str) -> str:
    """A variant that an index can be called after; its pages are in a folder of that name."""
    if not _VARIANT.fullmatch(name) or name in _TAKEN:
        msg = f"`{name}` is no name for a variant"
        raise UsageError(msg, hint="write --variant cu130")
    return name


def choose(
    project: str, files: Iterable[Link], requirements: Iterable[Requirement], wanted: Wanted
) -> list[Chosen]:
    """The files of a project that are wanted. Early releases are, if there is nothing else."""
    named = [one for one in _named(project, files) if _fits(one, wanted)]
    versions = {one.version for one in named}
    taken = {version for one in requirements for version in one.specifier.filter(versions)}
    return [
        Chosen(project, one.link, str(one.version), _variant(str(one.version), wanted))
        for one in named
        if one.version in taken
    ]


def _named(project: str, files: Iterable[Link]) -> Iterator[_Named]:
    """Files whose names can be read; nobody could install others."""
    for link in files:
        tags: frozenset[Tag] = frozenset()
        try:
            if link.file.endswith(".whl"):
                name, version, _, tags = parse_wheel_filename(link.file)
            else:
                name, version = parse_sdist_filename(link.file)
        except (InvalidWheelFilename, InvalidSdistFilename, ValueError):
            continue
        if name == project:
            yield _Named(link, version, tags)


def _fits(one: _Named, wanted: Wanted) -> bool:
    """Whether a file is for a Python and a platform that are wanted; sources are for none."""
    if not one.tags:
        return not wanted.pythons and not wanted.platforms
    return any(
        (not wanted.pythons or any(_runs_on(tag, python) for python in wanted.pythons))
        and (
            not wanted.platforms
            or tag.platform == "any"
            or any_match(tag.platform, wanted.platforms)
        )
        for tag in one.tags
    )


def _runs_on(tag: Tag, python: str) -> bool:
    """Whether a wheel with this tag can be installed for a Python such as `cp312` or `cp313t`."""
    plain = python.removesuffix("t")
    if plain == tag.interpreter:
        return tag.abi in (python, "none") or (tag.abi == _ABI3 and plain == python)
    ours, theirs = plain[2:], tag.interpreter[2:]
    if tag.interpreter.startswith("py") and tag.abi == "none":
        return theirs == ours[:1] or _later(ours, theirs)
    is_stable = tag.abi == _ABI3 and tag.interpreter.startswith("cp") and plain == python
    return is_stable and _later(ours, theirs)


def _later(ours: str, theirs: str) -> bool:
    """Whether `312` is as new as `39`, of the same major version."""
    digits = ours[1:].isdigit() and theirs[1:].isdigit()
    return digits and ours[0] == theirs[0] and int(ours[1:]) >= int(theirs[1:])


def _variant(version: str, wanted: Wanted) -> str:
    """What was asked for, or the compute in a local version; a file without fits all variants."""
    return local_compute(version) if wanted.variant is None else wanted.variant
