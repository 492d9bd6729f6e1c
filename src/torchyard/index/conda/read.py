"""Reading the index of any conda channel: `repodata.json`, and its shards (CEP 16).

Malformed documents never raise: their defects are listed in `faults`.
"""

from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from typing import TypeVar

import msgspec

from torchyard.host.zstd import ZstdError, ZstdFile
from torchyard.index.entry import is_file_name
from torchyard.model.values import UNDECODABLE, Value

REPODATA = "repodata.json"
PACKED = "repodata.json.zst"
SHARDS = "repodata_shards.msgpack.zst"
UNPATCHED = "repodata_from_packages.json"
"""The documents that a subdir may have; the last one is without corrections."""

LARGEST = 1 << 30
"""Maximum size of an unpacked document, over twice that of the largest public channel."""

LARGEST_SHARD = 64 << 20
"""Maximum size of a shard, as in conda, and of the index of shards."""

_CHUNK = 1 << 20


class _Told(Value, kw_only=True, forbid_unknown_fields=False):
    name: str
    version: str
    build: str
    build_number: int = 0
    subdir: str = ""
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    size: int | None = None


class Record(_Told, kw_only=True, forbid_unknown_fields=False):
    """The fields of a package that solvers and installers read. Hashes are hexadecimal."""

    md5: str | None = None
    sha256: str | None = None

    @property
    def hashes(self) -> dict[str, str]:
        digests = {"sha256": self.sha256, "md5": self.md5}
        return {kind: value.lower() for kind, value in digests.items() if value}


class _ShardRecord(_Told, kw_only=True, forbid_unknown_fields=False):
    """A record with its hashes as bytes."""

    md5: bytes | None = None
    sha256: bytes | None = None

    def plain(self) -> Record:
        values = {name: getattr(self, name) for name in _Told.__struct_fields__}
        return Record(
            **values,
            md5=self.md5.hex() if self.md5 else None,
            sha256=self.sha256.hex() if self.sha256 else None,
        )


class Repodata(Value, kw_only=True):
    """The packages of a subdir by their files' names."""

    records: dict[str, Record] = {}
    base: str = ""
    """The base address of the packages, relative to the document."""
    subdir: str = ""
    faults: tuple[str, ...] = ()


class ShardIndex(Value, kw_only=True):
    """The digests of shards by package name, and the base address of the shards."""

    shards: dict[str, str] = {}
    shards_base: str = ""
    faults: tuple[str, ...] = ()


class _Info(Value, kw_only=True, forbid_unknown_fields=False):
    subdir: str = ""
    base_url: str | None = None
    shards_base_url: str = ""


class _Document(Value, kw_only=True, forbid_unknown_fields=False):
    info: _Info = _Info()
    old: dict[str, Record] = msgspec.field(name="packages", default_factory=dict)
    new: dict[str, Record] = msgspec.field(name="packages.conda", default_factory=dict)


class _Shard(Value, kw_only=True, forbid_unknown_fields=False):
    old: dict[str, _ShardRecord] = msgspec.field(name="packages", default_factory=dict)
    new: dict[str, _ShardRecord] = msgspec.field(name="packages.conda", default_factory=dict)


class _Shards(Value, kw_only=True, forbid_unknown_fields=False):
    info: _Info = _Info()
    shards: dict[str, bytes]


_Kind = TypeVar("_Kind", _Shard, _Shards)
# Created at import: threads that create decoders concurrently see unfinished types, and crash.
_DOCUMENT = msgspec.json.Decoder(_Document)
_SHARD = msgspec.msgpack.Decoder(_Shard)
_SHARDS = msgspec.msgpack.Decoder(_Shards)


def read_repodata(data: bytes) -> Repodata:
    """Read `repodata.json`."""
    try:
        document = _DOCUMENT.decode(data)
    except UNDECODABLE as error:
        return Repodata(faults=(f"it can't be read: {error}",))
    return _checked(
        {**document.old, **document.new}, _folder(document.info.base_url), document.info.subdir
    )


def read_packed(data: bytes) -> Repodata:
    """Read `repodata.json.zst`."""
    text = _unpacked(data, LARGEST)
    return read_repodata(text) if isinstance(text, bytes) else Repodata(faults=(text,))


def read_shard_index(data: bytes) -> ShardIndex:
    """Read `repodata_shards.msgpack.zst`."""
    found = _decoded(data, _SHARDS)
    if isinstance(found, str):
        return ShardIndex(faults=(found,))
    return ShardIndex(
        shards={name: digest.hex() for name, digest in found.shards.items()},
        shards_base=_folder(found.info.shards_base_url),
    )


def read_shard(data: bytes, digest: str) -> Repodata:
    """Read the shard of one package; its name is the digest of its bytes."""
    if sha256(data).hexdigest() != digest:
        return Repodata(faults=("its bytes do not match the digest in its name",))
    found = _decoded(data, _SHARD)
    if isinstance(found, str):
        return Repodata(faults=(found,))
    records = {**found.old, **found.new}
    return _checked({file: record.plain() for file, record in records.items()})


def differing(record: Record, other: Record) -> list[str]:
    """Return the fields in which two records differ."""
    return [n for n in Record.__struct_fields__ if getattr(record, n) != getattr(other, n)]


def _checked(records: Mapping[str, Record], base: str = "", subdir: str = "") -> Repodata:
    """Return a document's records, without those whose file names are invalid."""
    sound = {file: record for file, record in records.items() if is_file_name(file)}
    faults = [f"`{file[:99]}` is not a valid file name" for file in records if file not in sound]
    return Repodata(records=sound, base=base, subdir=subdir, faults=tuple(faults))


def _folder(address: str | None) -> str:
    """Return a base address with a trailing slash, so that others can be joined to it."""
    return f"{address.rstrip('/')}/" if address else ""


def _decoded(data: bytes, decoder: msgspec.msgpack.Decoder[_Kind]) -> _Kind | str:
    text = _unpacked(data, LARGEST_SHARD)
    if isinstance(text, str):
        return text
    try:
        return decoder.decode(text)
    except UNDECODABLE as error:
        return f"it can't be read: {error}"


def _unpacked(data: bytes, most: int) -> bytes | str:
    """Return the decompressed zstandard frames, or why they can't be decompressed."""
    parts: list[bytes] = []
    with ZstdFile(BytesIO(data)) as file:
        try:
            while part := file.read(_CHUNK):
                most -= len(part)
                if most < 0:
                    return "it exceeds the limit when unpacked"
                parts.append(part)
        except EOFError:
            return "it is cut off"
        except ZstdError as error:
            return f"it can't be unpacked: {error}"
    return b"".join(parts)
