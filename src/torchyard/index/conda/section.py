"""conda packages in a channel: a conda channel with a part for each subdir."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

import msgspec

from torchyard.config.tables import load_tables
from torchyard.errors import PublishError
from torchyard.index.conda.dependents import follow_yanks
from torchyard.index.conda.record import conda_record
from torchyard.index.conda.repodata import NOARCH, of_name, record_of, repodata_pages
from torchyard.index.conda.shards import changed_shards, is_shard_key, shard_key, shards_page
from torchyard.index.entry import Entry, State
from torchyard.index.page import Page
from torchyard.index.section import (
    ANY_PLATFORM,
    Elsewhere,
    Fit,
    InstallSource,
    LandingRow,
    Staged,
    shell_quoted,
)
from torchyard.package.conda.format import CondaFormat
from torchyard.package.conda.index import INDEX, RUN_EXPORTS, conda_index
from torchyard.package.conda.name import SUFFIX, SUFFIXES, conda_name, split_conda_name
from torchyard.package.contents import Contents

_REQUIRED = re.compile(r"[^\s=<>!~\[]+")
_SUBDIR = re.compile(r"noarch|[a-z0-9]+-[a-z0-9]+")


@cache
def _subdirs() -> dict[str, str]:
    return {row.conda_subdir: name for name, row in load_tables().platforms.items()}


def conda_requires(depends: Iterable[str]) -> tuple[str, ...]:
    """Return the names of all requirements of a conda package, except virtual packages."""
    names = map(_REQUIRED.match, depends)
    return tuple(found[0] for found in names if found and not found[0].startswith("__"))


class CondaSection:
    """conda packages."""

    NAME = "conda"
    FORMAT = CondaFormat.NAME
    PACKAGE = "conda"
    TITLE = "conda packages"
    INDEX_PER_VARIANT = False
    MANY_PROJECTS = True
    HAS_VARIANTS = False
    KEYED_BY_NAME = True
    IGNORES_DRIVERS = True
    HAS_PROVENANCE = False
    FIRST_PART = NOARCH
    """Solvers request it from every conda channel."""

    def project(self, _part: str, entry: Entry) -> str:
        return conda_name(entry.file)

    def files_of(self, state: State, project: str) -> Sequence[Entry]:
        return of_name(state, project)

    def key(self, part: str, entry: Entry) -> str:
        """Return a path in its subdir, as conda file names may be reused for other bytes."""
        return f"{self.NAME}/{part}/{entry.file}"

    def upload_key(self, key: str, digest: str) -> str:
        """Return a temporary unique name, as another upload may use the same file name."""
        return f"{key.rpartition('/')[0]}/sending/{digest}{SUFFIX}"

    def part_of_key(self, key: str, _parts: Iterable[str]) -> str | None:
        """Return the subdir of a package or a shard; None for the index of shards."""
        section, _, rest = key.partition("/")
        is_fixed = key.endswith(SUFFIXES) or is_shard_key(key)
        return rest.partition("/")[0] if section == self.NAME and is_fixed else None

    def follow_yanks(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        return follow_yanks(entries)

    def fixed_keys(self, part: str, state: State) -> Iterator[str]:
        for digest in state.shards.values():
            yield shard_key(part, digest)

    def settle(self, part: str, state: State, touched: Iterable[Entry]) -> tuple[State, list[Page]]:
        shards, fresh = changed_shards(part, state, touched)
        return msgspec.structs.replace(state, shards=shards), fresh

    def pages(self, part: str, state: State, views: Iterable[str]) -> Iterator[Page]:
        for _ in views:  # there is only one
            yield from repodata_pages(part, state)
            yield shards_page(part, state)

    def root_pages(
        self, _listings: Mapping[str, Sequence[str]], _serials: Mapping[str, int]
    ) -> Iterator[Page]:
        yield from ()

    def fits(self, part: str, entry: Entry) -> Iterator[Fit]:
        python = re.search(r"(?:^|_)py(\d+)(?=h|_|$)", split_conda_name(entry.file).build)
        yield Fit(_subdirs().get(part, ANY_PLATFORM), f"cp{python[1]}" if python else "")

    def build_glob(self, entry: Entry) -> str:
        """Return a glob for the build strings of a variant, from the first words of this one."""
        words: list[str] = []
        for word in split_conda_name(entry.file).build.split("_"):
            if re.match(r"py\d|h[0-9a-f]{7}|\d", word):
                break
            words.append(word)
        wanted = entry.variant.count("-") + 1
        return "_".join([*words[:wanted], "*"]) if entry.variant and len(words) >= wanted else ""

    def stage(
        self, path: Path, contents: Contents, entry: Entry, md5: str, _project: str
    ) -> Staged:
        file = path.name
        index = conda_index(contents)
        if index is None or not _SUBDIR.fullmatch(index.subdir):
            msg = f"`{file}` does not name its subdirectory of a conda channel"
            raise PublishError(msg, hint=f"`torchyard check {path}` reports what is wrong with it")
        record = record_of(
            contents.texts[INDEX],
            sha256=entry.sha256,
            md5=md5,
            size=entry.size,
            run_exports=contents.texts.get(RUN_EXPORTS, b""),
        )
        entry = msgspec.structs.replace(entry, version=index.version, record=record)
        return Staged(index.subdir, entry, index.name, conda_requires(index.depends))

    def requires(self, entry: Entry, _metadata: bytes) -> tuple[str, ...]:
        return conda_requires(conda_record(entry).depends)

    def source(self, part: str, entry: Entry, address: str) -> InstallSource:
        record = conda_record(entry)
        return InstallSource(record.name, f"{address}/{self.NAME}", record.build, part)

    def commands(
        self, _project: str, entry: Entry, address: str, _elsewhere: Elsewhere
    ) -> dict[str, str]:
        record = conda_record(entry)
        spec = shell_quoted(f"{record.name}={entry.version}={record.build}")
        return {
            "conda": f"conda install --channel {address}/{self.NAME} --channel conda-forge {spec}"
        }

    def page_of(self, _row: LandingRow) -> str:
        return ""

    def examples(
        self, project: str, rows: Sequence[LandingRow], here: str, _elsewhere: Elsewhere
    ) -> Iterator[tuple[str, str]]:
        """Yield the conda command for each build of the example."""
        for row in rows:
            if row.section == self.NAME and row.project == project:
                spec = f"{row.name}=*={row.build}" if row.build else row.name
                command = f'conda install -c {here}/{self.NAME} -c conda-forge "{escape(spec)}"'
                yield f"conda, {row.variant or 'any'}", command
