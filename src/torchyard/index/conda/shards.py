"""Sharded repodata (CEP 16): a shard for each package name, and an index of shards.

A solver reads the index and the shards of the few names that it needs. Shards are named by the
sha256 of their bytes, so they never change.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

from torchyard.host.zstd import compress
from torchyard.index.conda.repodata import listed_packages, of_name
from torchyard.index.entry import WHOLE, Entry, State
from torchyard.index.page import Media, Page
from torchyard.package.conda.name import conda_name

_SHARD = ".msgpack.zst"
_RECORD = msgspec.json.Decoder(dict[str, object])


def shard_key(subdir: str, digest: str) -> str:
    return f"conda/{subdir}/shards/{digest}{_SHARD}"


def is_shard_key(key: str) -> bool:
    return "/shards/" in key and key.endswith(_SHARD)


def changed_shards(
    subdir: str, state: State, touched: Iterable[Entry]
) -> tuple[dict[str, str], list[Page]]:
    """Return the shard's digest of each package name, and the new shards.

    The state still has the old digests; `touched` are the entries added, removed or
    changed.
    """
    names = sorted({conda_name(entry.file) for entry in touched})
    groups = {name: of_name(state, name) for name in names}
    made = {name: _shard(entries) for name, entries in groups.items() if entries}
    digests = {name: sha256(data).hexdigest() for name, data in made.items()}
    kept = {name: digest for name, digest in state.shards.items() if name not in groups}
    fresh = [
        Page(shard_key(subdir, digest), made[name], Media.ZSTD)
        for name, digest in digests.items()
        if state.shards.get(name) != digest
    ]
    return {**kept, **digests}, fresh


def _shard(entries: Iterable[Entry]) -> bytes:
    found = listed_packages(entries)
    packages = {
        format_: {file: _packed(record) for file, record in records.items()}
        for format_, records in found.packages.items()
    }
    return compress(msgspec.msgpack.encode({**packages, "removed": found.removed}))


def _packed(record: msgspec.Raw) -> Mapping[str, object]:
    """Return a record with its digests as bytes."""
    fields = _RECORD.decode(record)
    return fields | {key: bytes.fromhex(str(fields[key])) for key in ("md5", "sha256")}


def shards_page(subdir: str, state: State) -> Page:
    """Return the index of shards, with their relative address."""
    info = {
        "subdir": subdir,
        "base_url": "",
        "shards_base_url": "./shards/",
        "serial": state.serials.get(WHOLE, 0),
    }
    shards = {name: bytes.fromhex(state.shards[name]) for name in sorted(state.shards)}
    data = msgspec.msgpack.encode({"version": 1, "info": info, "shards": shards})
    return Page(f"conda/{subdir}/repodata_shards.msgpack.zst", compress(data), Media.ZSTD)
