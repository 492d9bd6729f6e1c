"""A reader of channels that follows every link, and remembers what it has seen."""

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from html import unescape
from posixpath import join, normpath
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from torchyard.host.zstd import decompress
from torchyard.index.entry import SHARED, WHOLE, Entry
from torchyard.index.simple.write import serial_of
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import Head

Records = dict[str, dict[str, str | bytes]]
Fetch = Callable[[str], bytes | None]
Shown = dict[str, frozenset[str]]
"""What pages name: files, or projects."""

SHARDS = "repodata_shards.msgpack.zst"

_LINK = re.compile(r'<a href="([^"]*)"([^>]*)>([^<]*)</a>')
_SHA256 = re.compile(r'data-core-metadata="sha256=([0-9a-f]+)"')


class _File(NamedTuple):
    name: str
    url: str
    sha256: str
    metadata: str


class Reader:
    """Follows every link of a page, and compares the target with its hash.

    A page may be missing, but a page once seen must not vanish or become older.
    """

    def __init__(self, fetch: Fetch) -> None:
        self.reads = 0
        self.shown: Shown = {}
        self._fetch = fetch
        self._serials: dict[str, int] = {}

    def glance(self, path: str) -> None:
        """Read a page that lists no files."""
        self._get(path)

    def project(self, view: str, name: str) -> frozenset[str]:
        """Return the files of a project from its HTML or JSON; both are read."""
        html = self._page(f"{view}/{name}/index.html", _html_files)
        return html | self._page(f"{view}/{name}/index.json", _json_files)

    def projects(self, view: str) -> set[str]:
        """Return the projects of a view; each has pages."""
        found: set[str] = set()
        for file in ("index.html", "index.json"):
            page = self._get(f"{view}/{file}")
            if page is None:
                continue
            names = {one.url for one in _html_files(page)} if file == "index.html" else set()
            names |= set(re.findall(r'\{"name":"([^"]*)"\}', page.decode()))
            listed = self.shown[f"{view}/{file}"] = frozenset(name.rstrip("/") for name in names)
            found |= listed
            for name in listed:
                for kind in ("index.html", "index.json"):
                    assert self._get(f"{view}/{name}/{kind}"), f"{view}/{file} names {name}"
        return found

    def subdir(self, name: str) -> frozenset[str]:
        """Return the packages of a conda subdir, from each form of its index."""
        folder = f"conda/{name}"
        found = {
            file: self._conda(folder, file, msgspec.json.decode)
            for file in ("repodata.json", "repodata.json.zst")
        }
        page = self._get(f"{folder}/{SHARDS}")
        sharded: set[str] = set()
        for digest in msgspec.msgpack.decode(decompress(page))["shards"].values() if page else ():
            path = f"shards/{digest.hex()}.msgpack.zst"
            self._compare(folder, f"{folder}/{path}", digest.hex())
            sharded |= self._conda(folder, path, msgspec.msgpack.decode)
        found[SHARDS] = sharded
        self.shown |= {f"{folder}/{file}": frozenset(names) for file, names in found.items()}
        return frozenset().union(*found.values())

    def _conda(
        self, folder: str, file: str, decode: Callable[[bytes], dict[str, Records]]
    ) -> set[str]:
        page = self._get(f"{folder}/{file}")
        if page is None:
            return set()
        told = decode(decompress(page) if file.endswith(".zst") else page)["packages.conda"]
        for name, record in told.items():
            digest = record["sha256"]
            self._compare(
                file, f"{folder}/{name}", digest if isinstance(digest, str) else digest.hex()
            )
        return set(told)

    def listing(self, project: str, view: str) -> frozenset[str]:
        """Return the zips of a project in a view; the HTML lists no others."""
        folder = f"libtorch/{project}" if view == WHOLE else f"libtorch/{project}/{view}"
        found = {
            name: self._page(f"{folder}/{name}", _listed)
            for name in ("latest.json", "index.html", "index.json")
        }
        return found["index.html"] | found["index.json"]

    def links(self, path: str) -> frozenset[str]:
        """Return the files of a page for `--find-links`."""
        return self._page(path, _html_files)

    def _page(self, path: str, parse: Callable[[bytes], list[_File]]) -> frozenset[str]:
        page = self._get(path)
        if page is None:
            return frozenset()
        files = parse(page)
        for file in files:
            key = normpath(join(path.rpartition("/")[0], unquote(file.url)))
            self._compare(path, key, file.sha256)
            if file.metadata:
                self._compare(path, f"{key}.metadata", file.metadata)
        found = self.shown[path] = frozenset(file.name for file in files)
        return found

    def _compare(self, path: str, key: str, digest: str) -> None:
        self.reads += 1
        data = self._fetch(key)
        assert data is not None, f"{path} names {key}, which is not there"
        assert not digest or sha256(data).hexdigest() == digest, f"{path}: {key} has another hash"

    def _get(self, path: str) -> bytes | None:
        self.reads += 1
        page = self._fetch(path)
        if page is None:
            assert path not in self._serials, f"{path} was there, and is not"
            return None
        serial = _serial(path, page)
        known = self._serials.get(path, 0)
        assert serial >= known, f"{path} went back from {known} to {serial}"
        self._serials[path] = serial
        return page


def _serial(path: str, page: bytes) -> int:
    """Return the serial of a page, in any compression."""
    if path.endswith(SHARDS):
        found: int = msgspec.msgpack.decode(decompress(page))["info"]["serial"]
        return found
    return serial_of(decompress(page) if path.endswith(".zst") else page)


def _html_files(page: bytes) -> list[_File]:
    found = []
    for url, more, name in _LINK.findall(page.decode()):
        address, _, digest = url.partition("#sha256=")
        metadata = _SHA256.search(more)
        found.append(_File(unescape(name), address, digest, metadata[1] if metadata else ""))
    return found


def _listed(page: bytes) -> list[_File]:
    """Return the files of a listing, whose HTML links have no hashes."""
    if page.startswith(b"<"):
        return _html_files(page)
    files = msgspec.json.decode(page)["files"]
    return [_File(file["file"], file["url"], file["sha256"], "") for file in files]


def _json_files(page: bytes) -> list[_File]:
    return [
        _File(
            file["filename"],
            file["url"],
            file["hashes"]["sha256"],
            file.get("core-metadata", {}).get("sha256", ""),
        )
        for file in msgspec.json.decode(page)["files"]
    ]


def read_all(reader: Reader, head: Head) -> dict[str, frozenset[str]]:
    """Read every page of a channel; return the files of each project in each view."""
    reader.shown = {}
    found = {}
    for path in ("index.html", "libtorch/index.html"):
        reader.glance(path)
    for view in (*head.variants, WHOLE):
        if view.startswith("torch-"):
            found[view] = reader.links(view.replace("+", ".0+") + ".html")
        reader.projects(view)
        for part in head.parts:
            shelf, _, name = part.partition("/")
            if shelf == "simple":
                found[f"{part} {view}"] = reader.project(view, name)
            elif shelf == "libtorch":
                found[f"{part} {view}"] = reader.listing(name, view)
            elif view == WHOLE:
                found[f"{part} {view}"] = reader.subdir(name)
    return found


def told(channel: Channel) -> dict[str, frozenset[str]]:
    """Return the files of each project in each view, according to the head."""
    head = channel.head()
    linked = {
        view: frozenset(
            entry.file
            for part in head.parts
            for entry in channel.state(head, part).entries
            if entry.torch and entry.variant != SHARED and _is_in(part, entry, view)
        )
        for view in head.variants
        if view.startswith("torch-")
    }
    return linked | {
        f"{part} {view}": frozenset(
            entry.file
            for entry in channel.state(head, part).entries
            if view == WHOLE or _is_in(part, entry, view)
            if entry.yanked is None or not part.startswith("conda/")
        )
        for part in head.parts
        for view in (*head.variants, WHOLE)
        if view == WHOLE or not part.startswith("conda/")
    }


def _is_in(part: str, entry: Entry, view: str) -> bool:
    """Return whether an index of a variant, or of a torch and a variant, should have a file."""
    torch, plus, variant = view.removeprefix("torch-").partition("+")
    if not plus or not part.startswith("simple/"):
        return entry.variant in (view, SHARED)
    fits = entry.torch in ("", f"=={torch}.*")
    return entry.variant == SHARED or (entry.variant == variant and fits)


def assert_between(seen: Shown, before: Shown, after: Shown) -> None:
    """Require that files that stay are listed; added and removed ones may be, but no others."""
    for path in {*seen, *before, *after}:
        was, will, now = (pages.get(path, frozenset()) for pages in (before, after, seen))
        assert was & will <= now <= was | will, f"{path} shows {sorted(now)}"


def assert_right(channel: Channel, reader: Reader | None = None) -> int:
    """Require that every page exists and matches the head and its tag; count the reads.

    A reader with earlier pages also requires that no page has vanished or become older.
    """
    reader = reader or Reader(channel.objects.read)
    head = channel.head()
    assert read_all(reader, head) == told(channel)
    for part in ("", *head.parts):
        tags = channel.state(head, part).tags if part else head.tags
        assert {path: channel.objects.tag(path) for path in tags} == tags
    return reader.reads


@contextmanager
def watched(url: str, check: Callable[[Shown], None]) -> Iterator[Reader]:
    """Read all pages repeatedly, and check their contents. Faults are raised at the end."""
    channel = Channel.at(url, make=True)
    reader = Reader(channel.objects.read)
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            read_all(reader, channel.head())
            check(reader.shown)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(watch)
        try:
            yield reader
        finally:
            stop.set()
            done.result()


def only_more() -> Callable[[Shown], None]:
    """Return a check that pages, except `latest.json`, still list all files of earlier ones."""
    seen: Shown = {}

    def check(shown: Shown) -> None:
        for path, names in seen.items():
            if path.endswith("/latest.json"):
                continue
            assert names <= shown.get(path, frozenset()), f"{path} has lost files"
        seen.update(shown)

    return check
