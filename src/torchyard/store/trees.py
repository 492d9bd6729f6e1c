"""Store and fetch directories: each distinct file once, and streamed."""

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest, sha256
from pathlib import Path
from uuid import uuid4

from torchyard.errors import HostError, SelectionError, StoreError
from torchyard.host.files import is_full
from torchyard.model.result import File, Part, Result, Tree
from torchyard.store.gc_lease import GcWatch
from torchyard.store.keys import blob_key
from torchyard.store.local_cache import LocalCache
from torchyard.store.store import THREADS, Store

_SMALL = 8 << 20
"""Files up to this size are sent without asking first: one request in either case."""


class Writer:
    """Writes the files of one result to a store, then its manifest."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._paths: dict[str, Path] = {}
        self._watch = GcWatch(store.objects)

    def add_tree(self, folder: Path) -> Tree:
        """Store everything below a directory."""
        files: list[tuple[Path, str]] = []
        links: dict[str, str] = {}
        empty: list[str] = []
        for path, entry in walk(folder):
            name = path.relative_to(folder).as_posix()
            if entry.is_symlink():
                links[name] = str(path.readlink())
            elif entry.is_dir():
                empty.append(name)
            else:
                files.append((path, name))
        with ThreadPoolExecutor(THREADS) as pool:
            stored = pool.map(lambda file: self.add_file(*file), files)
            return Tree(files=tuple(stored), links=links, empty=tuple(empty))

    def add_file(self, path: Path, name: str) -> File:
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            status = os.fstat(file.fileno())
        if digest not in self._paths:
            self._paths[digest] = path
            self._send(digest, path)
        return File(
            path=name,
            digest=digest,
            size=status.st_size,
            executable=bool(status.st_mode & stat.S_IXUSR),
            mtime=status.st_mtime_ns,
        )

    def publish(self, result: Result) -> bool:
        """Write the manifest, unless there is one; then restore blobs that a collection removed."""

        def mend(blob: tuple[str, Path]) -> None:
            if self.store.objects.head(blob_key(blob[0])) is None:
                self._send(*blob)

        def heal() -> None:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(mend, list(self._paths.items())))
            self.store.publish(result)

        first = self.store.publish(result)
        self._watch.settle(heal)
        return first

    def _send(self, digest: str, path: Path) -> None:
        key = blob_key(digest)
        if path.stat().st_size <= _SMALL:
            self.store.objects.create(key, path)
        elif self.store.objects.head(key) is None:
            self.store.objects.write(key, path)


def walk(folder: Path) -> Iterator[tuple[Path, os.DirEntry[str]]]:
    """Yield files, links and empty directories below a directory, sorted by path."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = folder / entry.name
        if entry.is_symlink() or entry.is_file():
            yield path, entry
        elif not entry.is_dir():
            msg = f"`{path}` is neither a file, a link nor a directory, and can't be stored"
            raise HostError(msg, hint="remove it at the end of the last step")
        elif any(path.iterdir()):
            yield from walk(path)
        else:
            yield path, entry


def fetch_tree(store: Store, tree: Tree, folder: Path, cache: LocalCache | None = None) -> int:
    """Write a tree below a directory, with every file checked against its digest.

    Return how many bytes were fetched, which excludes cached files.
    """
    if cache is not None:
        cache.expect(tree)
    folders = {*tree.empty, *(str(Path(file.path).parent) for file in tree.files)}
    for name in sorted({*folders, *(str(Path(link).parent) for link in tree.links)}):
        _inside(folder, name).mkdir(parents=True, exist_ok=True)

    def fetch(file: File) -> int:
        path = _inside(folder, file.path)
        try:
            return fetch_file(store, file, path, cache)
        except OSError as error:
            if cache is None or not is_full(error):
                raise
            cache.clear()
            return fetch_file(store, file, path)

    with ThreadPoolExecutor(THREADS) as pool:
        fetched = sum(pool.map(fetch, tree.files))
    for name, target in tree.links.items():
        link = _inside(folder, name)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return fetched


def fetch_all(store: Store, results: Iterable[Result], folder: Path) -> list[Path]:
    """Write the files of several results to one directory; none may overwrite another.

    Results with files of the same name, such as wheels with different BLAS, get a directory for
    each block.
    """
    found = list(results)
    known: dict[str, set[str]] = {}
    for result in found:
        for name, content in _contents(result.tree).items():
            known.setdefault(name, set()).add(content)
    clashing = {name for name, contents in known.items() if len(contents) > 1}
    owners: dict[Path, tuple[str, str]] = {}
    places: list[tuple[Result, Path]] = []
    for result in found:
        contents = _contents(result.tree)
        block = "/".join(result.order.task.scope.split("/")[:2])
        place = folder if clashing.isdisjoint(contents) else folder / block
        places.append((result, place))
        for name, content in contents.items():
            owner, before = owners.setdefault(place / name, (result.id, content))
            if before != content:
                msg = f"{owner} and {result.id} both have a file `{name}`, not the same"
                raise SelectionError(msg, hint="take them out one by one, or name the files apart")
    for result, place in places:
        place.mkdir(parents=True, exist_ok=True)
        fetch_tree(store, result.tree, place)
    return sorted(owners)


def _contents(tree: Tree) -> dict[str, str]:
    """Return the digest or link target of each path."""
    links = {name: f"link to {target}" for name, target in tree.links.items()}
    return links | {file.path: file.digest for file in tree.files}


def _inside(folder: Path, name: str) -> Path:
    """Return a path below a directory; raise StoreError if it would be outside."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        msg = f"a result has a file `{name}` that would not stay in its directory"
        raise StoreError(msg, hint="the store was tampered with: do not use it")
    return folder / name


def fetch_file(store: Store, file: File, path: Path, cache: LocalCache | None = None) -> int:
    """Write one file of a result under its name only after its bytes are verified."""
    part = path.with_name(f".{uuid4().hex}.part")  # a name that no other file of the tree has
    try:
        is_here = cache is not None and cache.lay_out(file.digest, part)
        if not is_here:
            _write(store, file.blobs, file.digest, part, file.path)
    except OSError:
        part.unlink(missing_ok=True)  # the disk may be full
        raise
    if cache is not None and not is_here:
        cache.keep(file.digest, part)
    if file.executable:
        part.chmod(part.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    os.utime(part, ns=(file.mtime, file.mtime))
    part.replace(path)
    return 0 if is_here else file.size


def read_result_log(store: Store, result: Result) -> Iterator[bytes]:
    """Yield the log of a result, decompressed, in pieces."""
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    for blob in result.log.blobs:
        for piece in _read(store, blob, "the log"):
            yield inflate.decompress(piece)


def fetch_blob(store: Store, blob: Part, path: Path, name: str) -> None:
    """Write one blob to a file."""
    _write(store, (blob,), blob.digest, path, name)


def _write(store: Store, blobs: tuple[Part, ...], digest: str, path: Path, name: str) -> None:
    whole = sha256()
    with path.open("wb") as out:
        for blob in blobs:
            for piece in _read(store, blob, name):
                whole.update(piece)
                out.write(piece)
    if whole.hexdigest() != digest:
        msg = f"`{name}` is damaged in the store: its bytes are not those of {digest}"
        raise StoreError(msg, hint="`torchyard store verify --remove` takes it out")


def _read(store: Store, blob: Part, name: str) -> Iterator[bytes]:
    try:
        yield from store.objects.stream(blob_key(blob.digest))
    except FileNotFoundError as error:
        msg = f"`{name}` is missing in the store: there is no blob {blob.digest}"
        raise StoreError(msg, hint="`torchyard store verify` lists what else is") from error
