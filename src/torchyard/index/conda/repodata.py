"""`repodata.json`: the index of the conda packages of a platform, for solvers."""

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from torchyard.errors import BuildError
from torchyard.host.zstd import LEVEL, compress
from torchyard.index.entry import WHOLE, Entry, State
from torchyard.index.page import Media, Page
from torchyard.model.canonical import canonical_json
from torchyard.model.values import UNDECODABLE
from torchyard.package.conda.index import RUN_EXPORTS, parse_index
from torchyard.package.conda.name import SUFFIX, conda_name

NOARCH = "noarch"
"""The subdir that every channel must have, even if it is empty."""

_Group = Literal["packages", "packages.conda"]
"""The keys under which an index lists `.tar.bz2` and `.conda` packages."""

_file = attrgetter("file")


def record_of(
    index: bytes, *, sha256: str, md5: str, size: int, run_exports: bytes = b""
) -> msgspec.Raw:
    """Return the index record of a package: its `info/index.json`, with digests and size.

    `run_exports` is its `info/run_exports.json`, if it has one.
    """
    parse_index(index)
    record: dict[str, object] = msgspec.json.decode(index)
    record |= {"sha256": sha256, "md5": md5, "size": size}
    try:
        exports = msgspec.json.decode(run_exports or b"{}", type=dict[str, tuple[str, ...]])
    except UNDECODABLE as error:
        msg = f"`{RUN_EXPORTS}` can't be read: {error}"
        raise BuildError(msg, hint="write the package again") from error
    if exports:
        record["run_exports"] = exports
    return msgspec.Raw(canonical_json(record))


def of_name(state: State, name: str) -> list[Entry]:
    """Return the entries of a name. They are adjacent, but `a-b-1-0` may be among those of `a`."""
    first, end = (bisect_left(state.entries, name + sign, key=_file) for sign in "-.")
    return [entry for entry in state.entries[first:end] if conda_name(entry.file) == name]


class ListedPackages(NamedTuple):
    """Packages as in an index: by format, and the removed (yanked) ones."""

    packages: dict[_Group, dict[str, msgspec.Raw]]
    removed: list[str]


def listed_packages(entries: Iterable[Entry]) -> ListedPackages:
    tars: dict[str, msgspec.Raw] = {}
    condas: dict[str, msgspec.Raw] = {}
    removed: list[str] = []
    for entry in entries:
        if entry.yanked is not None:
            removed.append(entry.file)
        elif entry.file.endswith(SUFFIX):
            condas[entry.file] = entry.record
        else:
            tars[entry.file] = entry.record
    return ListedPackages({"packages": tars, "packages.conda": condas}, removed)


def repodata_pages(subdir: str, state: State) -> tuple[Page, Page]:
    """Return `repodata.json`, plain and compressed. Records are copied verbatim."""
    found = listed_packages(state.entries)
    data = msgspec.json.encode(
        {
            "info": {"subdir": subdir, "serial": state.serials.get(WHOLE, 0)},
            **found.packages,
            "removed": found.removed,
            "repodata_version": 1,
        }
    )
    path = f"conda/{subdir}/repodata.json"
    return Page(path, data, Media.JSON), Page(f"{path}.zst", compress(data, LEVEL), Media.ZSTD)
