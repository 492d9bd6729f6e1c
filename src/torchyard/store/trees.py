"""Store and fetch directories: each distinct file once, streamed, and without following links.

Files that a job left in its directory are not trusted, and neither is a directory that files are
written to: a link in it, even one of another result, may lead anywhere.
"""

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from torchyard.errors import BuildError, HostError, SelectionError, StoreError
from torchyard.host.files import is_full
from torchyard.host.own_files import HEAD, STAMP, make_own_directory, refuse_secret
from torchyard.host.untrusted_tree import EntryKind, TreeEntry, UntrustedTree
from torchyard.model.result import File, Part, Result, Tree
from torchyard.store.gc_lease import GcWatch
from torchyard.store.keys import blob_key
from torchyard.store.local_cache import LocalCache
from torchyard.store.manifest import tree_fault
from torchyard.store.objects import CHUNK, SMALL, Identity
from torchyard.store.same_reads import remember_reads
from torchyard.store.store import THREADS, Store

_REMOVE = "remove it at the end of the last step"


class _Origin(NamedTuple):
    """A file by its directory, and its path below that."""

    folder: Path
    path: str


class Writer:
    """Writes the files of one result to a store, then its manifest."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._origins: dict[str, _Origin] = {}
        self._watch = GcWatch(store.objects)

    def add_tree(self, folder: Path) -> Tree:
        """Store all that is in a directory except torchyard's stamp; links stay links."""
        found: dict[EntryKind, list[TreeEntry]] = {kind: [] for kind in EntryKind}
        with UntrustedTree(folder) as tree:
            for entry in tree.walk():
                _check_encoding(entry.path, folder)
                if entry.path != STAMP:
                    found[entry.kind].append(entry)
            for entry in found[EntryKind.SPECIAL]:
                msg = f"`{folder / entry.path}` is a {entry.kind}, and can't be stored"
                raise HostError(msg, hint=_REMOVE)
            links = {entry.path: tree.read_link(entry.path) for entry in found[EntryKind.LINK]}
            for target in links.values():
                _check_encoding(target, folder)

            def add(entry: TreeEntry) -> File:
                with tree.open_file(entry.path) as file:
                    return self._add(file, _Origin(folder, entry.path), entry.path)

            with ThreadPoolExecutor(THREADS) as pool:
                files = tuple(pool.map(add, found[EntryKind.FILE]))
        return Tree(
            files=files, links=links, empty=tuple(entry.path for entry in found[EntryKind.FOLDER])
        )

    def add_file(self, path: Path, name: str) -> File:
        """Store one file, which may not be a link, under a name."""
        with UntrustedTree(path.parent) as tree, tree.open_file(path.name) as file:
            return self._add(file, _Origin(path.parent, path.name), name)

    def publish(self, result: Result) -> bool:
        """Write the manifest, unless there is one; then restore blobs that a collection removed."""

        def restore(blob: tuple[str, _Origin]) -> None:
            digest, origin = blob
            key = blob_key(digest)
            if self.store.objects.head(key) is None:
                with UntrustedTree(origin.folder) as tree, tree.open_file(origin.path) as file:
                    self.store.objects.write(key, FileContent(file, digest, origin))

        def heal() -> None:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(restore, list(self._origins.items())))
            self.store.publish(result)

        first = self.store.publish(result)
        self._watch.settle(heal)
        remember_reads(self.store.objects, result)
        return first

    def _add(self, file: BinaryIO, origin: _Origin, name: str) -> File:
        """Store an open file; its size, digest and bytes come from a single read."""
        status = os.fstat(file.fileno())
        data = file.read(SMALL + 1)
        refuse_secret(data[:HEAD], name)
        size = len(data)
        if size <= SMALL:
            digest = sha256(data).hexdigest()
            if self._is_new(digest, origin):
                self.store.objects.ensure(blob_key(digest), data, Identity(size, digest))
        else:
            whole = sha256(data)
            while data := file.read(CHUNK):
                whole.update(data)
            digest, size = whole.hexdigest(), file.tell()
            if self._is_new(digest, origin):
                content = FileContent(file, digest, origin)
                self.store.objects.ensure(blob_key(digest), content, Identity(size, digest))
        return File(
            path=name,
            digest=digest,
            size=size,
            executable=bool(status.st_mode & stat.S_IXUSR),
            mtime=status.st_mtime_ns,
        )

    def _is_new(self, digest: str, origin: _Origin) -> bool:
        return self._origins.setdefault(digest, origin) is origin


class FileContent:
    """The bytes of an open file; raises an error at their end if the digest differs."""

    def __init__(self, file: BinaryIO, digest: str, origin: _Origin) -> None:
        self.size = os.fstat(file.fileno()).st_size
        self._file = file
        self._digest = digest
        self._origin = origin

    def __iter__(self) -> Iterator[bytes]:
        whole = sha256()
        self._file.seek(0)
        while piece := self._file.read(CHUNK):
            whole.update(piece)
            yield piece
        if whole.hexdigest() != self._digest:
            msg = f"`{self._origin.folder / self._origin.path}` changed while it was being stored"
            raise BuildError(msg, hint="end every program that a step starts before the step ends")


def _check_encoding(name: str, folder: Path) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        msg = f"`{folder}` has a name or a link that is not UTF-8: {name!a}"
        raise HostError(msg, hint=_REMOVE) from error


def fetch_tree(store: Store, tree: Tree, folder: Path, cache: LocalCache | None = None) -> int:
    """Write a tree below a directory, with every file checked against its digest.

    Return the number of fetched bytes, without cached files. The directory is created if it
    does not exist. Nothing is written through a link below it.
    """
    if why := tree_fault(tree):
        msg = f"a result can't be laid out: {why}"
        raise StoreError(msg, hint="the store was tampered with: do not use it")
    if cache is not None:
        cache.expect(tree)
    folder.mkdir(parents=True, exist_ok=True)
    with UntrustedTree(folder.resolve()) as target_tree:
        paths = (*(file.path for file in tree.files), *tree.links)
        for name in sorted({*tree.empty, *(path.rpartition("/")[0] for path in paths)} - {""}):
            target_tree.make_directory(name)

        def fetch(file: File) -> int:
            try:
                return _fetch(store, file, target_tree, cache)
            except OSError as error:
                if cache is None or not is_full(error):
                    raise
                cache.clear()
                return _fetch(store, file, target_tree, None)

        with ThreadPoolExecutor(THREADS) as pool:
            fetched = sum(pool.map(fetch, tree.files))
        for name, target in tree.links.items():
            target_tree.create_link(name, target)
    return fetched


def fetch_all(store: Store, results: Iterable[Result], folder: Path) -> list[Path]:
    """Write the files of several results to one directory; no file may overwrite another.

    Results with files of the same name, such as wheels with different BLAS, get a directory for
    each block.
    """
    found = list(results)
    digests: dict[str, set[str]] = {}
    for result in found:
        for name, content in _contents(result.delivery).items():
            digests.setdefault(name, set()).add(content)
    clashing = {name for name, contents in digests.items() if len(contents) > 1}
    owners: dict[str, tuple[str, str]] = {}
    whole = Tree()
    for result in found:
        block = "/".join(result.spec.task.scope.split("/")[:2])
        is_apart = block and not clashing.isdisjoint(_contents(result.delivery))
        prefix = f"{block}/" if is_apart else ""
        for name, content in _contents(result.delivery).items():
            owner, before = owners.setdefault(prefix + name, (result.id, content))
            if before != content:
                msg = f"{owner} and {result.id} both have a file `{name}`, with different content"
                raise SelectionError(msg, hint="fetch them one by one, or rename the files")
        whole = _joined(whole, _moved(result.delivery, prefix))
    if why := tree_fault(whole):
        msg = f"the results can't be in one directory: {why}"
        raise SelectionError(msg, hint="fetch them one by one")
    make_own_directory(folder)
    fetch_tree(store, whole, folder)
    return sorted(folder / name for name in owners)


def _moved(tree: Tree, prefix: str) -> Tree:
    """Return a tree whose paths all have a prefix."""
    return Tree(
        files=tuple(replace(file, path=prefix + file.path) for file in tree.files),
        links={prefix + name: target for name, target in tree.links.items()},
        empty=tuple(prefix + name for name in tree.empty),
    )


def _joined(first: Tree, second: Tree) -> Tree:
    """Return two trees as one; files in both must be the same."""
    files = {file.path: file for file in (*second.files, *first.files)}
    return Tree(
        files=tuple(files.values()),
        links=first.links | second.links,
        empty=tuple(dict.fromkeys((*first.empty, *second.empty))),
    )


def _contents(tree: Tree) -> dict[str, str]:
    """Return the digest or link target of each path."""
    links = {name: f"link to {target}" for name, target in tree.links.items()}
    return links | {file.path: file.digest for file in tree.files}


def fetch_file(store: Store, file: File, path: Path) -> None:
    """Write one file of a result to a path."""
    with UntrustedTree(path.parent.resolve()) as tree:
        _fetch(store, replace(file, path=path.name), tree, None)


def _fetch(store: Store, file: File, tree: UntrustedTree, cache: LocalCache | None) -> int:
    """Write a file; it gets its name only after its bytes are verified."""
    folder, slash, _ = file.path.rpartition("/")
    part = f"{folder}{slash}.{uuid4().hex}.part"  # a unique name in the tree
    try:
        with tree.create_file(part) as out:
            is_here = cache is not None and cache.lay_out(file.digest, out)
            if not is_here:
                _write(store, file.blobs, file.digest, out, file.path)
            if file.executable:
                mode = os.fstat(out.fileno()).st_mode
                os.fchmod(out.fileno(), mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            out.flush()
            os.utime(out.fileno(), ns=(file.mtime, file.mtime))
        if cache is not None and not is_here:
            with tree.open_file(part) as fetched:
                cache.keep(file.digest, fetched)
        tree.rename(part, file.path)
    except BaseException:
        tree.remove(part)  # the disk may be full
        raise
    return 0 if is_here else file.size


def read_result_log(store: Store, result: Result) -> Iterator[bytes]:
    """Yield the log of a result, decompressed, in pieces."""
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        for blob in result.log.blobs:
            for piece in _read(store, blob, "the log"):
                rest = piece
                while rest and not inflate.eof:
                    yield inflate.decompress(rest, CHUNK)
                    rest = inflate.unconsumed_tail
    except zlib.error as error:
        msg = f"the log of {result.id} is damaged: {error}"
        raise StoreError(msg, hint="`torchyard store verify` lists all defects") from error


def fetch_blob(store: Store, blob: Part, out: BinaryIO, name: str) -> None:
    """Write one blob to an open file."""
    _write(store, (blob,), blob.digest, out, name)


def _write(store: Store, blobs: tuple[Part, ...], digest: str, out: BinaryIO, name: str) -> None:
    whole = sha256()
    for blob in blobs:
        for piece in _read(store, blob, name):
            whole.update(piece)
            out.write(piece)
    if whole.hexdigest() != digest:
        msg = f"`{name}` is damaged in the store: its bytes do not match the digest {digest}"
        raise StoreError(msg, hint="`torchyard store verify --remove` takes it out")


def _read(store: Store, blob: Part, name: str) -> Iterator[bytes]:
    try:
        yield from store.objects.stream(blob_key(blob.digest))
    except FileNotFoundError as error:
        msg = f"`{name}` is missing in the store: there is no blob {blob.digest}"
        raise StoreError(msg, hint="`torchyard store verify` lists all defects") from error
