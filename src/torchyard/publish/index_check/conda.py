"""The audit of a conda channel: its indexes and its packages."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote, urljoin

from torchyard.checks.rules import index as rules
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import CONNECTIONS, redact_url
from torchyard.index.conda.read import (
    LARGEST_SHARD,
    PACKED,
    REPODATA,
    SHARDS,
    UNPATCHED,
    Record,
    Repodata,
    ShardIndex,
    differing,
    read_packed,
    read_repodata,
    read_shard,
    read_shard_index,
)
from torchyard.index.conda.repodata import NOARCH
from torchyard.model.matrix import any_match
from torchyard.package.conda.index import conda_index
from torchyard.package.conda.name import conda_stem, required_name
from torchyard.package.contents import is_torn
from torchyard.package.read import read_package
from torchyard.publish.index_check.files import fetched, weakness
from torchyard.publish.index_check.findings import IndexFindings, IndexHit
from torchyard.publish.index_check.simple import Scope
from torchyard.terminal.progress import ProgressLine


class _Item(NamedTuple):
    file: str
    record: Record
    url: str
    original: Record


class CondaAudit:
    """Audits the subdirs of a channel one by one."""

    def __init__(self, fetcher: Fetcher, scope: Scope, findings: IndexFindings) -> None:
        self.packages = 0
        self._fetcher = fetcher
        self._scope = scope
        self._findings = findings
        self._names: set[str] = set()
        self._required: dict[str, str] = {}
        self._reading = Lock()  # one package at a time, to bound the memory

    def run(self, root: str, subdirs: Iterable[str]) -> list[str]:
        """Audit these subdirs, and return the existing ones."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            found = [
                subdir
                for subdir in subdirs
                if self._subdir(urljoin(root, f"{subdir}/"), subdir, pool)
            ]
        if NOARCH not in found:
            where = redact_url(urljoin(root, f"{NOARCH}/{REPODATA}"))
            self._findings.add([IndexHit(rules.NOARCH, where, "it does not exist")])
        self._findings.add(self._unresolved(redact_url(root)))
        return found

    def _subdir(self, url: str, subdir: str, pool: ThreadPoolExecutor) -> bool:
        plain, packed = (
            self._fetcher.get(urljoin(url, REPODATA)),
            self._fetcher.get(urljoin(url, PACKED)),
        )
        if not plain.found and not packed.found:
            return False
        texts = {
            REPODATA: read_repodata(plain.data) if plain.found else None,
            PACKED: read_packed(packed.data) if packed.found else None,
        }
        read = {name: text for name, text in texts.items() if text is not None}
        where = redact_url(url)
        for name, document in read.items():
            self._findings.add(
                IndexHit(rules.PAGE, f"{where}{name}", fault) for fault in document.faults
            )
        whole = {name: d for name, d in read.items() if d.records or not d.faults}
        if not whole:
            return True
        data = next(iter(whole.values()))
        if len(whole) > 1:
            self._findings.add(_compared(where, REPODATA, data, PACKED, whole[PACKED]))
        if data.subdir not in ("", subdir):
            what = f"it says it is the index of {data.subdir}, not {subdir}"
            self._findings.add([IndexHit(rules.RECORD, where, what)])
        shards = self._fetcher.get(urljoin(url, SHARDS), most=LARGEST_SHARD)
        if shards.found:
            index = read_shard_index(shards.data)
            self._findings.add(self._shards(url, index, data, pool))
        self._packages(url, subdir, data, pool)
        return True

    def _shards(
        self, url: str, index: ShardIndex, data: Repodata, pool: ThreadPoolExecutor
    ) -> Iterator[IndexHit]:
        where = redact_url(url)
        for fault in index.faults:
            yield IndexHit(rules.SHARD, f"{where}{SHARDS}", fault)
        if index.faults:
            return
        base = urljoin(url, index.shards_base)
        records: dict[str, Record] = {}
        for name, shard in zip(
            index.shards, pool.map(partial(self._shard, base), index.shards.values()), strict=True
        ):
            for fault in shard.faults:
                yield IndexHit(rules.SHARD, f"{where}{SHARDS}", f"the shard of {name}: {fault}")
            records |= shard.records
            if shard.faults:  # reported elsewhere; compare the other shards
                records |= {file: r for file, r in data.records.items() if r.name == name}
        yield from _compared(where, REPODATA, data, SHARDS, Repodata(records=records))

    def _shard(self, base: str, digest: str) -> Repodata:
        answer = self._fetcher.get(urljoin(base, f"{digest}.msgpack.zst"), most=LARGEST_SHARD)
        if not answer.found:
            return Repodata(faults=(f"{digest}.msgpack.zst answers {answer.status}",))
        return read_shard(answer.data, digest)

    def _originals(self, url: str) -> dict[str, Record]:
        """Return records without corrections, if packages will be compared with them."""
        page = self._fetcher.get(urljoin(url, UNPATCHED)) if self._scope.deep else None
        return read_repodata(page.data).records if page and page.found else {}

    def _packages(self, url: str, subdir: str, data: Repodata, pool: ThreadPoolExecutor) -> None:
        originals = self._originals(url)
        base = urljoin(url, data.base)
        self._names |= {record.name.lower() for record in data.records.values()}
        items = [
            _Item(file, record, urljoin(base, quote(file)), originals.get(file, record))
            for file, record in data.records.items()
            if self._scope.has(record.name)
        ]
        self.packages += len(items)
        self._scope.agree(len(items), f"packages for {subdir}")
        with ProgressLine(f"checking {subdir}", len(items), "packages") as progress:
            for item, hits in zip(items, pool.map(self._look, items), strict=True):
                self._findings.add(hits)
                if item.record.subdir not in ("", subdir):
                    what = f"its record says it is for {item.record.subdir}, not {subdir}"
                    self._findings.add([IndexHit(rules.RECORD, item.file, what)])
                for name in _names(item.record.depends):
                    self._required.setdefault(name, item.file)
                progress(1)

    def _look(self, item: _Item) -> list[IndexHit]:
        """Compare a package with its record."""
        file, record, url, _ = item
        found = []
        if weak := weakness(record.hashes):
            found.append(IndexHit(rules.HASH_MISSING, file, f"its record has {weak}"))
        stem = conda_stem(file)
        if stem != f"{record.name}-{record.version}-{record.build}":
            what = f"its record is that of {record.name} {record.version} {record.build}"
            found.append(IndexHit(rules.RECORD, file, what))
        if self._scope.deep:
            return [*found, *self._read(item)]
        answer = self._fetcher.head(url)
        if not answer.found:
            found.append(
                IndexHit(rules.LINK_BROKEN, file, f"{redact_url(url)} answers {answer.status}")
            )
        elif record.size is not None and answer.size not in (None, record.size):
            what = f"it has {answer.size} bytes, and its record says {record.size}"
            found.append(IndexHit(rules.SIZE, file, what))
        return found

    def _read(self, item: _Item) -> Iterator[IndexHit]:
        file, record, url, original = item
        with TemporaryDirectory(prefix="torchyard-audit-") as folder:
            path = Path(folder, file)
            try:
                yield from fetched(self._fetcher, url, path, record.hashes, record.size)
            except FileNotFoundError:
                yield IndexHit(rules.LINK_BROKEN, file, f"{redact_url(url)} is not there")
                return
            with self._reading:
                contents = read_package(path)
        if is_torn(contents):
            what = f"it can't be unpacked: {contents.faults[0].what}"
            yield IndexHit(rules.PACKAGE, file, what)
        own = conda_index(contents)
        if own is None:
            return
        for field in ("name", "version", "build", "depends"):
            ours, theirs = getattr(own, field), getattr(original, field)
            if ours != theirs:
                what = f"its record says {field} {_short(theirs)}, and the package {_short(ours)}"
                yield IndexHit(rules.RECORD, file, what)

    def _unresolved(self, where: str) -> Iterator[IndexHit]:
        for name, file in sorted(self._required.items()):
            if name not in self._names and not any_match(name, self._scope.external):
                yield IndexHit(rules.UNRESOLVED, file, f"`{name}` is not in {where}")


def _short(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _names(depends: Iterable[str]) -> Iterator[str]:
    """Yield the names of required packages, without virtual ones."""
    for name in filter(None, map(required_name, depends)):
        if not name.startswith("__"):
            yield name


def _compared(
    where: str, name: str, data: Repodata, other_name: str, other: Repodata
) -> Iterator[IndexHit]:
    """Compare the records of two documents about the same subdir."""
    url = f"{where}{other_name}"
    for file in sorted(data.records.keys() | other.records.keys()):
        if data.records.get(file) == other.records.get(file):
            continue
        if file not in other.records:
            what = f"it has no {file}, which {name} has"
        elif file not in data.records:
            what = f"it has {file}, which {name} lacks"
        else:
            fields = differing(data.records[file], other.records[file])
            what = f"it has another {', '.join(fields)} of {file} than {name}"
        yield IndexHit(rules.REPODATA_DIFFERS, url, what)
