"""Wheels in a channel: a simple index of all files, and one for each variant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from hashlib import sha256
from html import escape
from operator import and_
from pathlib import Path
from urllib.parse import quote

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from torchyard.config.tables import load_tables
from torchyard.errors import PublishError
from torchyard.index.entry import WHOLE, Entry, State
from torchyard.index.filename import SDISTS
from torchyard.index.page import Page
from torchyard.index.section import (
    ANY_PLATFORM,
    Elsewhere,
    Fit,
    InstallSource,
    LandingRow,
    ProjectSection,
    Staged,
    indexes_for,
    shell_quoted,
)
from torchyard.index.simple.write import ProjectIndex
from torchyard.index.simple.write import root_pages as view_pages
from torchyard.index.sort_keys import python_key
from torchyard.index.views import home_of, in_view, kind_of, view_for
from torchyard.model.requirement import parse_requirement
from torchyard.package.contents import Contents
from torchyard.package.formats import FORMATS
from torchyard.package.wheel.compatible_tags import tag_platforms
from torchyard.package.wheel.extras import is_excluded
from torchyard.package.wheel.format import WheelFormat
from torchyard.package.wheel.metadata import about_text, fields_of, values
from torchyard.package.wheel.name import is_wheel_name, split_tags


def wheel_fits(file: str) -> Iterator[Fit]:
    """Yield the platforms and Pythons of a wheel's tags; unknown platforms keep their tag."""
    tags = split_tags(file)
    if len(tags) != len(("python", "abi", "platform")):
        return
    pythons, abis, platforms = (tag.split(".") for tag in tags)
    for tag in platforms:
        for platform in tag_platforms(tag):
            for python in pythons:
                yield from (Fit(platform, name) for name in _tag_pythons(python, abis))


def _tag_pythons(python: str, abis: list[str]) -> list[str]:
    if not python.startswith("cp"):
        return ["" if python.startswith("py") else python]
    if "abi3" not in abis:
        return [abi if abi.startswith(python) else python for abi in abis]
    oldest = python_key(python)
    rows = load_tables().pythons
    fitting = [name for name, row in rows.items() if not row.free_threaded]
    return [name for name in fitting if python_key(name) >= oldest]


_TORCH = "torch"


def wheel_requirements(file: str, metadata: bytes) -> Iterator[Requirement]:
    """Yield the requirements of a wheel, extras included."""
    for line in values(fields_of(metadata), "Requires-Dist"):
        try:
            yield parse_requirement(line)
        except InvalidRequirement as error:
            msg = f"`{file}` requires `{line}`, which is malformed: {error}"
            raise PublishError(msg, hint="correct the requirement in the project") from error


def required_torch(metadata: bytes) -> str:
    """Return the versions of torch that a wheel requires, as `==2.13.*`; "" for any or none.

    Requirements without a marker apply everywhere; if all have markers, the first one counts.
    """
    found = []
    for line in values(fields_of(metadata), "Requires-Dist"):
        with suppress(InvalidRequirement):
            requirement = parse_requirement(line)
            if canonicalize_name(requirement.name) == _TORCH and not is_excluded(requirement):
                found.append(requirement)
    everywhere = [requirement for requirement in found if requirement.marker is None] or found[:1]
    return str(reduce(and_, (requirement.specifier for requirement in everywhere), SpecifierSet()))


class SimpleSection(ProjectSection):
    """Wheels, and mirrored source distributions."""

    NAME = "simple"
    FORMAT = WheelFormat.NAME
    PACKAGE = "wheel"
    TITLE = "wheels"
    INDEX_PER_VARIANT = True
    HAS_PROVENANCE = True

    def part_of_key(self, key: str, _parts: Iterable[str]) -> str | None:
        """Return the project of a wheel, or of a mirrored source distribution."""
        folder, _, file = key.rpartition("/")
        if not folder.startswith("packages/"):
            return None
        if is_wheel_name(file):
            return canonicalize_name(file.partition("-")[0])
        is_other = any(file.endswith(form.SUFFIXES) for form in FORMATS.values())
        is_sdist = file.endswith(SDISTS) and not is_other
        return canonicalize_name(file.rpartition("-")[0]) if is_sdist else None

    def pages(self, part: str, state: State, views: Iterable[str]) -> Iterator[Page]:
        index = ProjectIndex(part, state)
        for view in views:
            yield from index.pages(view, in_view(state, view))

    def root_pages(
        self, listings: Mapping[str, Sequence[str]], serials: Mapping[str, int]
    ) -> Iterator[Page]:
        for view, names in listings.items():
            yield from view_pages(view, names, serials.get(view, 0))

    def fits(self, _part: str, entry: Entry) -> Iterator[Fit]:
        if is_wheel_name(entry.file):
            yield from wheel_fits(entry.file)
        else:
            yield Fit(ANY_PLATFORM)

    def stage(
        self, path: Path, contents: Contents, entry: Entry, _md5: str, _project: str
    ) -> Staged:
        file = path.name
        metadata = about_text(contents, "METADATA")
        if not entry.version or not metadata or not fields_of(metadata):
            why = contents.faults[0].what if contents.faults else "it has no valid METADATA"
            msg = f"`{file}` is not an installable wheel: {why}"
            raise PublishError(msg, hint=f"`torchyard check {path}` reports what is wrong with it")
        python = values(fields_of(metadata), "Requires-Python")
        entry = msgspec.structs.replace(
            entry,
            requires_python=python[0] if python else "",
            metadata=sha256(metadata).hexdigest(),
            torch=required_torch(metadata),
        )
        name = WheelFormat().distribution(file)
        return Staged(name, entry, name, self.requires(entry, metadata), metadata)

    def requires(self, entry: Entry, metadata: bytes) -> tuple[str, ...]:
        names = (
            canonicalize_name(needed.name) + (f" @ {needed.url}" if needed.url else "")
            for needed in wheel_requirements(entry.file, metadata)
            if not is_excluded(needed, entry.file)
        )
        return tuple(dict.fromkeys(names))

    def source(self, part: str, entry: Entry, address: str) -> InstallSource:
        return InstallSource(part, _index_of(entry, address))

    def commands(
        self, project: str, entry: Entry, address: str, elsewhere: Elsewhere
    ) -> dict[str, str]:
        """Return commands that name the local version, which other indexes lack."""
        index = _index_of(entry, address)
        wanted = shell_quoted(f"{project}=={entry.version}")
        others = indexes_for(entry.variant, elsewhere)
        quoted = tuple(map(shell_quoted, others)) if others else others
        return {
            "pip": f"pip install {_pip_indexes(index, quoted)} {wanted}",
            "uv": f"uv pip install {_uv_indexes(index, quoted)} {wanted}",
        }

    def page_of(self, row: LandingRow) -> str:
        return quote(f"{_view_of(row)}/{row.name}/index.html")

    def examples(
        self, project: str, rows: Sequence[LandingRow], here: str, elsewhere: Elsewhere
    ) -> Iterator[tuple[str, str]]:
        """Yield the pip command for each index."""
        ours = [row for row in rows if row.section == self.NAME]
        for view, row in {_view_of(row): _of_view(row) for row in ours}.items():
            others = indexes_for(row.variant, elsewhere)
            escaped = tuple(map(escape, others)) if others else others
            index = f"{here}/{escape(quote(view))}/"
            command = f"pip install {escape(project)} {_pip_indexes(index, escaped)}"
            yield f"pip, {row.title}", command


def _view_of(row: LandingRow) -> str:
    """Return the name of the smallest index that has the files of a row."""
    return str(view_for(row.variant, row.torch)) or WHOLE


def _of_view(row: LandingRow) -> LandingRow:
    """Return the row as in its smallest index, which may be for any torch."""
    return row._replace(torch=view_for(row.variant, row.torch).torch)


def _index_of(entry: Entry, address: str) -> str:
    """Return the smallest index of a channel that has a file."""
    return f"{address}/{quote(str(home_of(kind_of(entry))) or WHOLE)}/"


def _pip_indexes(index: str, elsewhere: Elsewhere) -> str:
    """Return pip's options for a channel and other indexes; pip treats all indexes alike."""
    if elsewhere == ():
        return f"--extra-index-url {index}"
    return " ".join([f"--index-url {index}", *(f"--extra-index-url {u}" for u in elsewhere or ())])


def _uv_indexes(index: str, elsewhere: Elsewhere) -> str:
    """Return uv's options; uv uses other indexes only for projects that the channel lacks."""
    if elsewhere is None:
        return f"--index-url {index}"
    *others, last = elsewhere or ("",)
    words = [f"--index {address}" for address in (index, *others)]
    return " ".join([*words, *([f"--default-index {last}"] if last else [])])
