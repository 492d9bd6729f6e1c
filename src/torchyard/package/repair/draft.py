"""A package draft: unchanged members are copied verbatim, in the same order."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from torchyard.errors import CheckError
from torchyard.model.values import Reported
from torchyard.package.formats import format_named
from torchyard.package.wheel.dist_info import updated_record
from torchyard.package.zip.directory import ZipEntry
from torchyard.package.zip.raw_copy import Raw
from torchyard.package.zip.unpack import content_of, sound_directory
from torchyard.package.zip.writer import Member, writing

_SIGNATURES = ("RECORD.jws", "RECORD.p7s")


class MemberChange(Reported):
    """A change to a member."""

    member: str
    what: str


class PackageDraft:
    """Changes to a zip archive before it is written. Ambiguous archives are refused."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        directory = sound_directory(path.name, file)
        self.entries = {entry.name: entry for entry in directory.entries}
        self._comment = directory.comment
        self.format = format_named(path.name)
        self.home = self.format.metadata_folder(path.name, self.entries)
        """The folder of a wheel's metadata, with a slash; a zip has none."""
        self.sources: dict[str, Path | bytes] = {}
        self.folders: dict[str, str] = {}
        self.removed: set[str] = set()
        self.added: list[Member] = []
        self.changes: list[MemberChange] = []
        self.notes: list[str] = []
        """Notes about changes that failed or remain to be done."""

    def read(self, name: str) -> bytes:
        if name not in self.entries:
            msg = f"`{self.path.name}` has no `{name}`"
            raise CheckError(msg, hint="it is incomplete: build it again")
        return content_of(self.file, self.entries[name])

    def current(self, name: str) -> bytes:
        """Return a text with the changes so far."""
        source = self.sources.get(name)
        return source if isinstance(source, bytes) else self.read(name)

    def replace(self, name: str, new: bytes, what: str) -> None:
        """Replace the content of a member if it differs."""
        if new != self.read(name):
            self.sources[name] = new
            self.changes.append(MemberChange(name, what))

    def rename(self, folder: str, new: str) -> None:
        """Rename a folder, if it exists."""
        if any(name.startswith(folder) for name in self.entries):
            self.folders[folder] = new
            self.changes.append(MemberChange(folder, f"called {new}"))

    def renamed(self, name: str) -> str | None:
        """Return the new name of a member; None if it is removed."""
        if name in self.removed:
            return None
        for old, new in self.folders.items():
            if name.startswith(old):
                return new + name.removeprefix(old)
        return name

    def remove(self, name: str, why: str) -> None:
        """Remove a member, if it exists."""
        if name in self.entries:
            self.removed.add(name)
            self.changes.append(MemberChange(name, f"left out: {why}"))

    def write(self, target: Path) -> None:
        """Write the package. If there are changes, a wheel's RECORD is rewritten and comes last."""
        record = f"{self.home}RECORD" if self.home and self.changes else ""
        text = self.read(record).decode(errors="surrogateescape") if record else ""
        for name in _SIGNATURES if record else ():
            self.remove(self.home + name, "it is the signature of the old RECORD")
        with writing(target, self._comment) as archive:
            written = archive.add(self._items(record))
            if record:
                own = self.renamed(record) or record
                new = updated_record(text, written, own, self.renamed)
                archive.add([Member(own, new.encode(errors="surrogateescape"))])

    def _items(self, record: str) -> Iterator[Member | Raw]:
        """Yield all members in order; new ones come before a wheel's metadata."""
        run: list[ZipEntry] = []  # archives without faults have no gaps between members
        waiting = self.added
        for entry in self.entries.values():
            name = self.renamed(entry.name)
            comes_home = bool(waiting and self.home and entry.name.startswith(self.home))
            stays = name == entry.name != record and name not in self.sources
            if run and (comes_home or not stays):
                yield Raw(self.file, tuple(run))
                run = []
            if comes_home:
                yield from waiting
                waiting = []
            if stays:
                run.append(entry)
            elif name is not None and entry.name in self.sources:
                yield Member(name, self.sources[entry.name], bool(entry.mode & 0o100))
            elif name is not None and entry.name != record:
                yield Raw(self.file, (entry,), name)
        if run:
            yield Raw(self.file, tuple(run))
        yield from waiting
