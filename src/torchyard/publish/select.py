"""Select files of a channel: `torch==2.14.0`, `torch==2.14.0.dev2026*`, `torch`.

A selector is a requirement. Names of projects may be globs, and so may versions after `==`, even
where PEP 440 forbids it. A version without a local part includes all versions with one.
"""

import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchyard.errors import SelectionError, UsageError
from torchyard.index.entry import Entry
from torchyard.model.suggest import did_you_mean
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import PartName, parse_part
from torchyard.publish.channel.reader import ChannelReader

_SELECTOR = re.compile(r"([A-Za-z0-9*?][A-Za-z0-9._*?-]*)\s*(.*)")
_GLOB = re.compile(r"==\s*([A-Za-z0-9._+!*?\[\]-]+)")


What = Literal["yanked", "offered", "shown", "hidden", "corrected"]
"""The result of an operation on a file."""


class Chosen(NamedTuple):
    """A file of a channel, and its part."""

    part: str
    entry: Entry


class Selector(NamedTuple):
    """A requirement that selects files."""

    text: str
    project: str
    fits: Callable[[str], bool]
    """Return whether a version is selected."""

    def matches(self, part: PartName, entry: Entry) -> bool:
        name = project_of(part, entry)
        return fnmatchcase(canonicalize_name(name), self.project) and self.fits(entry.version)


class Selection(NamedTuple):
    """Files that any selector matches, filtered by variants and names."""

    selectors: tuple[Selector, ...]
    variants: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def matches(self, part: PartName, entry: Entry) -> bool:
        return (
            any(selector.matches(part, entry) for selector in self.selectors)
            and _fits(self.variants, entry.variant)
            and _fits(self.files, entry.file)
        )

    def parts(self, head: Head) -> list[str]:
        """Return the parts that may have such files, in the channel's order."""
        return [name for name in head.parts if self._may_have(parse_part(name))]

    def _may_have(self, part: PartName) -> bool:
        return part.rules.MANY_PROJECTS or any(
            fnmatchcase(part.name, selector.project) for selector in self.selectors
        )

    def __str__(self) -> str:
        words = [selector.text for selector in self.selectors]
        words += [f"--variant {variant}" for variant in self.variants]
        return " ".join([*words, *(f"--only {file}" for file in self.files)])


def parse_selection(
    texts: Iterable[str], variants: Iterable[str] = (), files: Iterable[str] = ()
) -> Selection:
    return Selection(tuple(map(_parse, texts)), tuple(variants), tuple(files))


def _parse(text: str) -> Selector:
    found = _SELECTOR.fullmatch(text.strip())
    if found is None:
        msg = f"`{text}` does not name files of a channel"
        raise UsageError(msg, hint="write torch==2.14.0, torch==2.14.0.dev2026* or torch")
    return Selector(text.strip(), canonicalize_name(found[1]), _versions(text, found[2]))


def _versions(text: str, rest: str) -> Callable[[str], bool]:
    if not rest:
        return lambda _: True
    glob = _GLOB.fullmatch(rest)
    try:
        wanted = SpecifierSet(rest)
    except InvalidSpecifier as error:
        if glob is None:
            msg = f"`{text}` is not a known range of versions"
            hint = "write torch==2.14.0, torch>=2.13,<2.14 or torch==2.14.0.dev2026*"
            raise UsageError(msg, hint=hint) from error
        pattern = glob[1]
        return lambda version: (
            fnmatchcase(version, pattern) or fnmatchcase(public(version), pattern)
        )

    @cache
    def fits(version: str) -> bool:
        try:
            return wanted.contains(Version(version), prereleases=True)
        except InvalidVersion:  # conda's can be anything
            return glob is not None and glob[1] == version

    return fits


def _fits(globs: Collection[str], text: str) -> bool:
    return not globs or any(fnmatchcase(text, glob) for glob in globs)


def project_of(part: PartName, entry: Entry) -> str:
    """Return the project of a file: a conda subdir has many projects."""
    return part.rules.project(part.name, entry)


def public(version: str) -> str:
    """Return a version without its local part, which all variants of a day share."""
    return version.partition("+")[0]


def choose(channel: ChannelReader, head: Head, selection: Selection) -> list[Chosen]:
    """Return all selected files; none is an error."""
    chosen: list[Chosen] = []
    there: list[Chosen] = []
    for name in selection.parts(head):
        part = parse_part(name)
        for entry in channel.state(head, name).entries:
            there.append(Chosen(name, entry))
            if selection.matches(part, entry):
                chosen.append(there[-1])
    for selector in selection.selectors:
        if not any(selector.matches(parse_part(name), entry) for name, entry in there):
            raise _nothing(channel.url, selector, head, there)
    if not chosen:
        msg = f"`{channel.url}` has no file of `{selection}`"
        known = sorted({match.entry.variant for match in there} - {""})
        wanted = selection.variants[0] if selection.variants else ""
        hint = did_you_mean(wanted, known) if wanted and known else "--only takes globs: *cp312*"
        raise SelectionError(msg, hint=hint)
    return chosen


def _nothing(url: str, selector: Selector, head: Head, there: Iterable[Chosen]) -> SelectionError:
    """Return an error that names the unknown project or version, and similar ones."""
    versions: dict[str, set[str]] = {}
    for name, entry in there:
        versions.setdefault(project_of(parse_part(name), entry), set()).add(public(entry.version))
    known = [name for name in versions if fnmatchcase(canonicalize_name(name), selector.project)]
    msg = f"`{url}` has nothing that `{selector.text}` names"
    if known:
        asked = selector.text.rpartition("=")[2]
        near = sorted({version for name in known for version in versions[name]})
        return SelectionError(msg, hint=did_you_mean(asked, near))
    names = {part.name for part in map(parse_part, head.parts) if not part.rules.MANY_PROJECTS}
    everything = sorted(names | versions.keys())
    return SelectionError(
        msg, hint=did_you_mean(selector.project, everything) if everything else "it is empty"
    )
