"""The newest versions in a conda channel, read from its shards if it has them."""

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urljoin

from packaging.version import InvalidVersion, Version

from torchyard.host.fetcher import Fetcher, directory_url
from torchyard.host.http import CONNECTIONS
from torchyard.index.conda.read import (
    LARGEST_SHARD,
    PACKED,
    REPODATA,
    SHARDS,
    Record,
    read_packed,
    read_repodata,
    read_shard,
    read_shard_index,
)


def newest_conda_versions(
    channel: str, names: Collection[str], subdirs: Iterable[str]
) -> dict[str, str]:
    """Return the newest version of each package in a channel, without pre-releases."""
    root = directory_url(channel)
    newest: dict[str, Version] = {}
    for subdir in subdirs:
        for record in _records(Fetcher(root), f"{root}{subdir}/", names):
            try:
                version = Version(record.version)
            except InvalidVersion:
                continue
            if record.name in names and not version.is_prerelease:
                newest[record.name] = max(version, newest.get(record.name, version))
    return {name: str(version) for name, version in newest.items()}


def _records(fetcher: Fetcher, url: str, names: Collection[str]) -> Iterator[Record]:
    shards = fetcher.get(urljoin(url, SHARDS), most=LARGEST_SHARD)
    if shards.found:
        index = read_shard_index(shards.data)
        base = urljoin(url, index.shards_base)
        wanted = [digest for name, digest in index.shards.items() if name in names]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            pages = pool.map(lambda d: fetcher.get(urljoin(base, f"{d}.msgpack.zst")), wanted)
            for digest, page in zip(wanted, pages, strict=True):
                yield from read_shard(page.data, digest).records.values()
        return
    for name, read in ((PACKED, read_packed), (REPODATA, read_repodata)):
        page = fetcher.get(urljoin(url, name))
        if page.found:
            yield from read(page.data).records.values()
            return
