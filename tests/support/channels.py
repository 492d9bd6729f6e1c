"""Channels for tests: tiny packages, changes that publish them, and simulated crashes."""

import io
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import md5, sha256
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

import msgspec

from torchyard.index.conda.repodata import record_of
from torchyard.index.entry import SHARED, Entry, State, sort_key
from torchyard.index.simple.section import required_torch
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import key_of, parse_part
from torchyard.publish.publish import publish
from torchyard.publish.staged import Package
from torchyard.store.objects import NO_HEADERS, Headers, ObjectMeta, Objects

NOW = "2026-11-15T14:20:00Z"
LATER = ChangeReason("a test", NOW)
T = TypeVar("T")


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
    project: str,
    version: str = "1.0",
    variant: str = SHARED,
    requires: Iterable[str] = (),
    *,
    size: int = 0,
) -> Made:
    """Return a real wheel that has only metadata, padded with blanks if it is to be large."""
    version = f"{version}+{variant}" if variant else version
    needs = "".join(f"Requires-Dist: {name}\n" for name in requires)
    about = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{needs}"
    folder = f"{project}-{version}.dist-info"
    files = {
        "METADATA": about,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if size:
        files["blanks"] = " " * size
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
        torch=required_torch(about.encode()),
    )
    names = tuple(name.partition("=")[0] for name in requires)
    return Made(f"simple/{project}", entry, data, about.encode(), names)


def conda(name: str, version: str = "1.0") -> Made:
    """Return a conda package that is valid for a channel, but not for an installer."""
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
    """Return a zip that a channel accepts as libtorch."""
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
    """Return the row of a member in RECORD."""
    digest = urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(data)}"


def adding(*entries: Entry) -> Edit:
    """Publish files that are not published yet."""

    def edit(state: State) -> State:
        known = {sort_key(entry) for entry in state.entries}
        new = [entry for entry in entries if sort_key(entry) not in known]
        if not new:
            return state
        every = tuple(sorted((*state.entries, *new), key=sort_key))
        return msgspec.structs.replace(state, entries=every)

    return edit


def without(*files: str) -> Edit:
    """Remove files from the pages."""

    def edit(state: State) -> State:
        kept = tuple(entry for entry in state.entries if entry.file not in files)
        return msgspec.structs.replace(state, entries=kept)

    return edit


def put(channel: Channel, *packages: Made, at: str = NOW) -> Head:
    """Publish packages without checks."""
    with TemporaryDirectory() as folder:
        staged = [_staged(one, Path(folder)) for one in packages]
        return publish(channel, channel.head(), staged, ChangeReason("a test", at)).head


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


class Death(BaseException):
    """A simulated crash, which no code catches."""


def die() -> None:
    raise Death


class Mortal(Objects):
    """Objects that crash their user before or after a chosen operation; writes persist.

    Or that run a function then, such as a change by another writer.
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

    def head(self, key: str) -> ObjectMeta | None:
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
