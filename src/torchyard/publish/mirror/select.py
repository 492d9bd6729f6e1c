"""Select files of another index, and the channel's variant for each."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from torchyard.checks.expected import local_compute
from torchyard.errors import UsageError
from torchyard.index.filename import Named, read_name
from torchyard.index.simple.read import FileLink
from torchyard.model.matrix import any_match
from torchyard.model.requirement import parse_requirement
from torchyard.model.values import Value
from torchyard.package.wheel.compatible_tags import runs_on
from torchyard.publish.channel.layout import TAKEN

_PYTHON = re.compile(r"cp[0-9]{2,}t?")
_VARIANT = re.compile(r"[a-z0-9][a-z0-9._-]*")


class MirrorRequest(Value, kw_only=True):
    """The files to mirror; without Pythons or platforms, for all of them."""

    selects: tuple[str, ...]
    """Requirements: `torch==2.13.*`."""
    pythons: tuple[str, ...] = ()
    """As tags: `cp312`."""
    platforms: tuple[str, ...] = ()
    """Globs over platform tags: `manylinux*x86_64`."""
    variant: str | None = None
    """For all files, instead of the variants in their versions."""


class MirrorFile(NamedTuple):
    """A file to mirror."""

    project: str
    link: FileLink
    version: str
    variant: str


def parse_selects(selects: Iterable[str]) -> dict[str, list[Requirement]]:
    """Return requirements by project; a file must fulfil any of its project's."""
    found: dict[str, list[Requirement]] = {}
    for text in selects:
        try:
            requirement = parse_requirement(text)
        except InvalidRequirement as error:
            msg = f"`{text}` is not a requirement: {error}"
            raise UsageError(msg, hint="write 'torch==2.13.*'") from error
        if requirement.url or requirement.marker or requirement.extras:
            msg = f"`{text}` has more than a name and versions"
            raise UsageError(msg, hint="write 'torch==2.13.*'")
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def check_python(name: str) -> str:
    """Return the tag of a Python, or raise if invalid."""
    if not _PYTHON.fullmatch(name):
        msg = f"`{name}` is not a Python tag"
        raise UsageError(msg, hint="write --python cp312, or cp313t for a free-threaded one")
    return name


def check_variant(name: str) -> str:
    """Return the name of a variant, which is a folder of pages, or raise if invalid."""
    if not _VARIANT.fullmatch(name) or name in TAKEN:
        msg = f"`{name}` is not a valid name of a variant"
        raise UsageError(msg, hint="write --variant cu130")
    return name


def choose_files(
    project: str,
    files: Iterable[FileLink],
    requirements: Iterable[Requirement],
    wanted: MirrorRequest,
) -> list[MirrorFile]:
    """Yield the files of a project to mirror; pre-releases only if there are no others."""
    named = [(link, name) for link, name in _named(project, files) if _fits(name, wanted)]
    versions = {candidate.version for _, candidate in named}
    taken = {version for r in requirements for version in r.specifier.filter(versions)}
    return [
        MirrorFile(project, link, str(candidate.version), _variant(str(candidate.version), wanted))
        for link, candidate in named
        if candidate.version in taken
    ]


def _named(project: str, files: Iterable[FileLink]) -> Iterator[tuple[FileLink, Named]]:
    """Yield files with valid names; others cannot be installed."""
    for link in files:
        with suppress(ValueError):
            name = read_name(link.file, project)
            if name.project == project:
                yield link, name


def _fits(candidate: Named, wanted: MirrorRequest) -> bool:
    """Return whether a file is for a requested Python and platform; sdists never are."""
    if not candidate.tags:
        return not wanted.pythons and not wanted.platforms
    return any(
        (not wanted.pythons or any(runs_on(python, tag) for python in wanted.pythons))
        and (
            not wanted.platforms
            or tag.platform == "any"
            or any_match(tag.platform, wanted.platforms)
        )
        for tag in candidate.tags
    )


def _variant(version: str, wanted: MirrorRequest) -> str:
    """Return the requested variant, or the compute of the local version; "" means all."""
    return local_compute(version) if wanted.variant is None else wanted.variant
