"""Channels made by hand: tiny wheels, changes that publish them, and a reader who checks it all."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from html import unescape
from pathlib import Path
from posixpath import join, normpath
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec

from torchyard.index.entry import SHARED, WHOLE, Entry, State, order_of, package_key
from torchyard.index.simple import serial_of
from torchyard.publish.channel import Channel
from torchyard.publish.draft import Edit, Order
from torchyard.publish.head import Head
from torchyard.store.objects import NO_HEADERS, Headers, Meta, Objects

NOW = "2026-11-15T14:20:00Z"
LATER = Order("a test", NOW)
T = TypeVar("T")
Fetch = Callable[[str], bytes | None]


class Made(NamedTuple):
    """A wheel, and its entry in a channel."""

    part: str
    entry: Entry
    data: bytes
    metadata: bytes

    @property
    def key(self) -> str:
        return package_key(self.entry.sha256, self.entry.file)


def wheel(
    project: str, version: str = "1.0", variant: str = SHARED, requires: Iterable[str] = ()
) -> Made:
    """A real wheel, with nothing in it but words about itself."""
    version = f"{version}+{variant}" if variant else version
    needs = "".join(f"Requires-Dist: {name}\n" for name in requires)
    about = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{needs}"
    folder = f"{project}-{version}.dist-info"
    files = {
        "METADATA": about,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "".join(f"{folder}/{name},,\n" for name in ("METADATA", "WHEEL", "RECORD")),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(f"{folder}/{name}"), text)
    data = out.getvalue()
    entry = Entry(
        file=f"{project}-{version}-py3-none-any.whl",
        version=version,
        variant=variant,
        sha256=sha256(data).hexdigest(),
        size=len(data),
        uploaded=NOW,
        metadata=sha256(about.encode()).hexdigest(),
    )
    return Made(f"simple/{project}", entry, data, about.encode())


def adding(*entries: Entry) -> Edit:
    """Publish files, unless they are."""

    def edit(state: State) -> State:
        known = {order_of(entry) for entry in state.entries}
        new = [entry for entry in entries if order_of(entry) not in known]
        if not new:
            return state
        every = tuple(sorted((*state.entries, *new), key=order_of))
        return msgspec.structs.replace(state, entries=every)

    return edit


def without(*files: str) -> Edit:
    """Take files from the pages."""

    def edit(state: State) -> State:
        kept = tuple(entry for entry in state.entries if entry.file not in files)
        return msgspec.structs.replace(state, entries=kept)

    return edit


def put(channel: Channel, *wheels: Made) -> Head:
    """Publish wheels in the order in which their projects are named."""
    for one in wheels:
        channel.objects.create(f"{one.key}.metadata", one.metadata)
        channel.objects.create(one.key, one.data)
    parts = dict.fromkeys(one.part for one in wheels)
    edits = {part: adding(*(one.entry for one in wheels if one.part == part)) for part in parts}
    return channel.commit(edits, LATER)


_LINK = re.compile(r'<a href="([^"]*)"([^>]*)>([^<]*)</a>')
_SHA256 = re.compile(r'data-core-metadata="sha256=([0-9a-f]+)"')


class _File(NamedTuple):
    name: str
    url: str
    sha256: str
    metadata: str


class Reader:
    """Somebody who follows every link of a page, and compares what is there with its hash.

    A page may be missing; one that was there may not be, nor may an older one come back.
    """

    def __init__(self, fetch: Fetch) -> None:
        self.reads = 0
        self._fetch = fetch
        self._serials: dict[str, int] = {}

    def project(self, view: str, name: str) -> set[str]:
        """The files of a project, which the HTML or the JSON tells; both are looked at."""
        html = self._page(f"{view}/{name}/index.html", _html_files)
        return html | self._page(f"{view}/{name}/index.json", _json_files)

    def projects(self, view: str) -> set[str]:
        """The projects of a view; each has pages."""
        found: set[str] = set()
        for file in ("index.html", "index.json"):
            page = self._get(f"{view}/{file}")
            if page is None:
                continue
            names = {one.url for one in _html_files(page)} if file == "index.html" else set()
            names |= set(re.findall(r'\{"name":"([^"]*)"\}', page.decode()))
            for name in (name.rstrip("/") for name in names):
                found.add(name)
                for kind in ("index.html", "index.json"):
                    assert self._get(f"{view}/{name}/{kind}"), f"{view}/{file} names {name}"
        return found

    def _page(self, path: str, parse: Callable[[bytes], list[_File]]) -> set[str]:
        page = self._get(path)
        if page is None:
            return set()
        files = parse(page)
        for file in files:
            key = normpath(join(path.rpartition("/")[0], unquote(file.url)))
            self._compare(path, key, file.sha256)
            if file.metadata:
                self._compare(path, f"{key}.metadata", file.metadata)
        return {file.name for file in files}

    def _compare(self, path: str, key: str, digest: str) -> None:
        self.reads += 1
        data = self._fetch(key)
        assert data is not None, f"{path} names {key}, which is not there"
        assert sha256(data).hexdigest() == digest, f"{path}: {key} has another hash"

    def _get(self, path: str) -> bytes | None:
        self.reads += 1
        page = self._fetch(path)
        serial = serial_of(page)
        known = self._serials.setdefault(path, serial)
        assert serial >= known, f"{path} went back from {known} to {serial}"
        self._serials[path] = serial
        return page


def _html_files(page: bytes) -> list[_File]:
    found = []
    for url, more, name in _LINK.findall(page.decode()):
        address, _, digest = url.partition("#sha256=")
        metadata = _SHA256.search(more)
        found.append(_File(unescape(name), address, digest, metadata[1] if metadata else ""))
    return found


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


def read_all(reader: Reader, head: Head) -> dict[str, set[str]]:
    """Look at every page of a channel; what each project has in each view."""
    found = {}
    for view in (*head.variants, WHOLE):
        reader.projects(view)
        for part in head.parts:
            shelf, _, name = part.partition("/")
            if shelf == "simple":
                found[f"{view}/{name}"] = reader.project(view, name)
    return found


def told(channel: Channel) -> dict[str, set[str]]:
    """What each project has in each view, as the head says."""
    head = channel.head()
    return {
        f"{view}/{part.partition('/')[2]}": {
            entry.file
            for entry in channel.state(head, part).entries
            if entry.variant in (view, SHARED) or view == WHOLE
        }
        for view in (*head.variants, WHOLE)
        for part in head.parts
        if part.startswith("simple/")
    }


class Death(BaseException):
    """Nobody catches it."""


def die() -> None:
    raise Death


class Mortal(Objects):
    """Objects whose user dies before or after a chosen operation; what is written stays.

    Or something else happens then, such as a change by somebody else.
    """

    def __init__(
        self, url: str, at: int, *, after: bool = False, then: Callable[[], object] = die
    ) -> None:
        super().__init__(url)
        self.written: list[str] = []
        """What was created or swapped, in order."""
        self._at = at
        self._after = after
        self._then = then
        self._operations = 0
        self._busy = False

    def read(self, key: str) -> bytes | None:
        return self._live(partial(super().read, key))

    def head(self, key: str) -> Meta | None:
        return self._live(partial(super().head, key))

    def create(self, key: str, data: bytes | Path, headers: Headers = NO_HEADERS) -> bool:
        done = self._live(partial(super().create, key, data, headers))
        self.written += [key] if done else []
        return done

    def swap(self, key: str, data: bytes, tag: str | None, headers: Headers = NO_HEADERS) -> bool:
        done = self._live(partial(super().swap, key, data, tag, headers))
        self.written += [key] if done and tag is not None else []  # else it was created
        return done

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._live(partial(super().delete, [key]))

    def _live(self, do: Callable[[], T]) -> T:
        if self._busy:  # a part of another operation, which may hold a lock
            return do()
        self._operations += 1
        now = self._operations == self._at
        if now and not self._after:
            self._then()
        self._busy = True
        try:
            done = do()
        finally:
            self._busy = False
        if now and self._after:
            self._then()
        return done
