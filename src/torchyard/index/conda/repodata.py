"""`repodata.json`: the index of the conda packages of a platform, for solvers."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from torchyard.errors import BuildError
from torchyard.host.zstd import LEVEL, compress
from torchyard.index.conda.read import REPODATA, UNPATCHED
from torchyard.index.conda.record import listed_record
from torchyard.index.entry import NOT_PATCHED, WHOLE, Entry, State
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


def listed_packages(
    entries: Iterable[Entry], record: Callable[[Entry], msgspec.Raw] = listed_record
) -> ListedPackages:
    tars: dict[str, msgspec.Raw] = {}
    condas: dict[str, msgspec.Raw] = {}
    removed: list[str] = []
    for entry in entries:
        if entry.yanked is not None:
            removed.append(entry.file)
        elif entry.file.endswith(SUFFIX):
            condas[entry.file] = record(entry)
        else:
            tars[entry.file] = record(entry)
    return ListedPackages({"packages": tars, "packages.conda": condas}, removed)


def repodata_pages(subdir: str, state: State) -> Iterator[Page]:
    """Yield `repodata.json`, plain and compressed, and once corrected, the one without corrections.

    Records are copied verbatim.
    """
    path, original = f"conda/{subdir}/{REPODATA}", f"conda/{subdir}/{UNPATCHED}"
    if original in state.tags or any(entry.patch != NOT_PATCHED for entry in state.entries):
        found = listed_packages(state.entries, attrgetter("record"))
        yield Page(original, _document(subdir, state, found), Media.JSON)
    data = _document(subdir, state, listed_packages(state.entries))
    yield Page(path, data, Media.JSON)
    yield Page(f"{path}.zst", compress(data, LEVEL), Media.ZSTD)


def _document(subdir: str, state: State, found: ListedPackages) -> bytes:
    return msgspec.json.encode(
        {
            "info": {"subdir": subdir, "serial": state.serials.get(WHOLE, 0)},
            **found.packages,
            "removed": found.removed,
            "repodata_version": 1,
        }
    )
