"""Channels made by hand: tiny wheels, changes that publish them, and a reader who checks it all."""

import io
import re
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import md5, sha256
from html import unescape
from itertools import count
from pathlib import Path
from posixpath import join, normpath
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec

from torchyard.index.entry import SHARED, WHOLE, Entry, State, order_of
from torchyard.index.repodata import record_of
from torchyard.index.simple import serial_of
from torchyard.package.zstd import decompress
from torchyard.publish.channel import Channel
from torchyard.publish.draft import Edit, Order
from torchyard.publish.head import Head
from torchyard.publish.publish import publish
from torchyard.publish.shelves import key_of, parse_part
from torchyard.publish.staged import Package
from torchyard.store.objects import NO_HEADERS, Headers, Meta, Objects

NOW = "2026-11-15T14:20:00Z"
LATER = Order("a test", NOW)
T = TypeVar("T")
Records = dict[str, dict[str, str | bytes]]
Fetch = Callable[[str], bytes | None]


class Made(NamedTuple):
    """A wheel, and its entry in a channel."""

    part: str
    entry: Entry
    data: bytes
    metadata: bytes

    requires: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return key_of(parse_part(self.part), self.entry)


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
    }
    lines = [f"{folder}/{name},{_recorded(text.encode())}\n" for name, text in files.items()]
    files["RECORD"] = "".join([*lines, f"{folder}/RECORD,,\n"])
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
    return Made(f"simple/{project}", entry, data, about.encode(), tuple(requires))


def conda(name: str, version: str = "1.0") -> Made:
    """What a channel takes for a conda package, though no installer would."""
    file = f"{name}-{version}-h1_0.conda"
    data = file.encode()
    digest = sha256(data).hexdigest()
    index = {"name": name, "version": version, "build": "h1_0", "build_number": 0}
    record = record_of(
        msgspec.json.encode(index | {"subdir": "linux-64"}),
        sha256=digest,
        md5=md5(data, usedforsecurity=False).hexdigest(),
        size=len(data),
    )
    entry = Entry(
        file=file,
        version=version,
        variant="cpu",
        sha256=digest,
        size=len(data),
        uploaded=NOW,
        record=record,
    )
    return Made("conda/linux-64", entry, data, b"")


def libtorch(version: str, variant: str) -> Made:
    """What a channel takes for a zip of libraries."""
    file = f"libtorch-shared-with-deps-{version}+{variant}.zip"
    data = file.encode()
    entry = Entry(
        file=file,
        version=f"{version}+{variant}",
        variant=variant,
        sha256=sha256(data).hexdigest(),
        size=len(data),
        uploaded=NOW,
    )
    return Made("libtorch/torch", entry, data, b"")


def _recorded(data: bytes) -> str:
    """What RECORD says of a member."""
    digest = urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(data)}"


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


def put(channel: Channel, *packages: Made, at: str = NOW) -> Head:
    """Publish packages, without any gate."""
    with TemporaryDirectory() as folder:
        staged = [_staged(one, Path(folder)) for one in packages]
        return publish(channel, channel.head(), staged, Order("a test", at)).head


def _staged(made: Made, folder: Path) -> Package:
    path = folder / made.entry.file
    path.write_bytes(made.data)
    return Package(
        path=path,
        part=made.part,
        entry=made.entry,
        name=made.part.partition("/")[2],
        requires=made.requires,
        findings=(),
        metadata=made.metadata,
    )


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

    def subdir(self, name: str) -> set[str]:
        """The packages of a conda subdir: what each form of its index tells is there."""
        folder = f"conda/{name}"
        plain = self._conda(folder, "repodata.json", msgspec.json.decode)
        packed = self._conda(folder, "repodata.json.zst", msgspec.json.decode)
        page = self._get(f"{folder}/repodata_shards.msgpack.zst")
        sharded: set[str] = set()
        for digest in msgspec.msgpack.decode(decompress(page))["shards"].values() if page else ():
            path = f"shards/{digest.hex()}.msgpack.zst"
            self._compare(folder, f"{folder}/{path}", digest.hex())
            sharded |= self._conda(folder, path, msgspec.msgpack.decode)
        return plain | packed | sharded

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

    def listing(self, project: str, view: str) -> set[str]:
        """The zips of a project in a view; the HTML names no others."""
        folder = f"libtorch/{project}" if view == WHOLE else f"libtorch/{project}/{view}"
        found = {
            name: self._page(f"{folder}/{name}", _listed)
            for name in ("latest.json", "index.html", "index.json")
        }
        return found["index.html"] | found["index.json"]

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
        assert not digest or sha256(data).hexdigest() == digest, f"{path}: {key} has another hash"

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


def _listed(page: bytes) -> list[_File]:
    """Files of a listing, whose HTML tells no hashes with its links."""
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


def read_all(reader: Reader, head: Head) -> dict[str, set[str]]:
    """Look at every page of a channel; what each project has in each view."""
    found = {}
    for view in (*head.variants, WHOLE):
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


def told(channel: Channel) -> dict[str, set[str]]:
    """What each project has in each view, as the head says."""
    head = channel.head()
    return {
        f"{part} {view}": {
            entry.file
            for entry in channel.state(head, part).entries
            if entry.variant in (view, SHARED) or view == WHOLE
            if entry.yanked is None or not part.startswith("conda/")
        }
        for part in head.parts
        for view in (*head.variants, WHOLE)
        if view == WHOLE or not part.startswith("conda/")
    }


def assert_right(channel: Channel) -> int:
    """Every page is there, says what the head says, and is what its tag says; count the reads."""
    reader = Reader(channel.objects.read)
    head = channel.head()
    assert read_all(reader, head) == told(channel)
    for part in ("", *head.parts):
        tags = channel.state(head, part).tags if part else head.tags
        assert {path: channel.objects.tag(path) for path in tags} == tags
    return reader.reads


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
        self._operations = count(1)
        self._busy = threading.local()

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
        if hasattr(self._busy, "now"):  # a part of another operation, which may hold a lock
            return do()
        now = next(self._operations) == self._at
        if now and not self._after:
            self._then()
        self._busy.now = True
        try:
            done = do()
        finally:
            del self._busy.now
        if now and self._after:
            self._then()
        return done
