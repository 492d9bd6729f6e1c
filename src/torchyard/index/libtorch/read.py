"""Reading listings of libtorch zips, as `listing` writes them.

Malformed pages never raise: their defects are listed in `faults`.
"""

from typing import Annotated, NamedTuple
from urllib.parse import urljoin

import msgspec

from torchyard.index.entry import is_file_name
from torchyard.index.simple.read import FileLink
from torchyard.model.values import Value


class Zip(NamedTuple):
    """A file, and the fields that only listings of zips have."""

    link: FileLink
    version: str
    variant: str


class Zips(Value, kw_only=True):
    """A page with all files, or with the files of the newest version."""

    project: str = ""
    latest: str = ""
    files: tuple[Zip, ...] = ()
    faults: tuple[str, ...] = ()


class _Row(Value, kw_only=True, forbid_unknown_fields=False):
    file: str
    version: str
    variant: str
    url: str
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    size: int
    yanked: str | None = None


class _Page(Value, kw_only=True, forbid_unknown_fields=False):
    project: str
    latest: str
    files: tuple[_Row, ...]


_PAGE = msgspec.json.Decoder(_Page)


def read_zips(data: bytes, url: str) -> Zips:
    """Read a JSON page from an address."""
    try:
        page = _PAGE.decode(data)
        files = tuple(Zip(_link(row, url), row.version, row.variant) for row in page.files)
    except (ValueError, RecursionError) as error:
        return Zips(faults=(f"it can't be read: {error}",))
    return Zips(project=page.project, latest=page.latest, files=files)


def _link(row: _Row, base: str) -> FileLink:
    if not is_file_name(row.file):
        msg = f"`{row.file[:99]}` is not a valid file name"
        raise ValueError(msg)
    return FileLink(
        file=row.file,
        url=urljoin(base, row.url),
        hashes={"sha256": row.sha256},
        yanked=row.yanked,
        size=row.size,
    )
