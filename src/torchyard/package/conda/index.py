"""A conda package's own metadata in `info/`, from any build tool."""

from typing import TypeVar

import msgspec

from torchyard.errors import BuildError
from torchyard.model.values import UNDECODABLE, Value
from torchyard.package.contents import Contents

NAME = "conda"
INFO = "info/"
INDEX = f"{INFO}index.json"
PATHS = f"{INFO}paths.json"
ABOUT = f"{INFO}about.json"
RUN_EXPORTS = f"{INFO}run_exports.json"
_LONGEST_INDEX = 256 << 10


class CondaIndex(Value, kw_only=True, forbid_unknown_fields=False):
    """The part of `info/index.json` that names the package."""

    name: str
    version: str
    build: str
    subdir: str = ""
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    license: str | None = None
    noarch: str | None = None


class CondaPath(Value, kw_only=True, forbid_unknown_fields=False):
    """An installed file. The digest and size of a link have little meaning."""

    path: str = msgspec.field(name="_path")
    path_type: str = "hardlink"
    sha256: str | None = None
    size_in_bytes: int | None = None
    prefix_placeholder: str | None = None
    file_mode: str = "text"


class _Paths(Value, kw_only=True, forbid_unknown_fields=False):
    paths: tuple[CondaPath, ...]


_Part = TypeVar("_Part", CondaIndex, _Paths)


def parse_index(text: bytes) -> CondaIndex:
    """Read `info/index.json`."""
    if len(text) > _LONGEST_INDEX:
        msg = f"`{INDEX}` has {len(text)} bytes, which is too large for solvers"
        raise BuildError(msg, hint="write the package again")
    return _decode(INDEX, text, CondaIndex)


def parse_paths(text: bytes) -> tuple[CondaPath, ...]:
    """Read `info/paths.json`."""
    return _decode(PATHS, text, _Paths).paths


def _decode(name: str, text: bytes, kind: type[_Part]) -> _Part:
    try:
        return msgspec.json.decode(text, type=kind)
    except UNDECODABLE as error:
        msg = f"`{name}` can't be read: {error}"
        raise BuildError(msg, hint="write the package again") from error


def prefix_placeholders(contents: Contents) -> dict[str, CondaPath]:
    """Return the files into which installers write the prefix, by name; none if unreadable."""
    try:
        rows = parse_paths(contents.texts.get(PATHS, b"")) if is_conda(contents) else ()
    except BuildError:
        return {}
    return {row.path: row for row in rows if row.prefix_placeholder}


def is_conda(contents: Contents) -> bool:
    return contents.format == NAME


def conda_index(contents: Contents) -> CondaIndex | None:
    """Return the index of a conda package; None for other formats, or if it is unreadable."""
    text = contents.texts.get(INDEX) if is_conda(contents) else None
    try:
        return None if text is None else parse_index(text)
    except BuildError:
        return None


def json_fields(contents: Contents, member: str) -> dict[str, object]:
    """Return all fields of a JSON file in `info/`; none for other formats, or if unreadable."""
    try:
        text = contents.texts.get(member, b"{}") if is_conda(contents) else b"{}"
        return msgspec.json.decode(text, type=dict[str, object])
    except UNDECODABLE:
        return {}
