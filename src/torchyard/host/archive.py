"""Untrusted tar and zip archives: nothing is written outside of the target directory.

Members are written through an `UntrustedTree`, so no link of an archive is followed, in any
order of members.
"""

import bz2
import gzip
import lzma
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from torchyard.errors import HostError
from torchyard.host.files import is_full
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree, remove_tree
from torchyard.host.zstd import ZstdError, ZstdFile

_ZIP = b"PK\x03\x04"
_COMPRESSIONS: dict[bytes, Callable[[BinaryIO], object]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": ZstdFile,
}
"""The first bytes of files of each compression."""

_LONGEST_LINK = 4096
_LARGEST_HEADER = 1 << 20
"""Limits the headers of a tar archive's member, which are read into memory: names, maps, …"""

_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, ZstdError, EOFError),
    *(ValueError, OverflowError),  # invalid numbers, dates and texts
    *(NotImplementedError, RuntimeError),  # the latter for a zip with a password
)


class ArchiveMember(NamedTuple):
    """A member of an archive.

    `target` is that of a symbolic link; if `is_same`, it is another member with the same bytes.
    `open` works for files, until the next member is read.
    """

    path: str
    kind: EntryKind
    open: Callable[[], IO[bytes]]
    executable: bool = False
    mtime: float | None = None
    target: str = ""
    is_same: bool = False
    size: int = 0

    def write_to(self, tree: UntrustedTree) -> None:
        """Write it to a tree, replacing an earlier member with the same path."""
        if self.kind is EntryKind.SPECIAL:
            msg = f"`{self.path}` is a device, socket or fifo"
            raise HostError(msg)
        folder = posixpath.dirname(self.path)
        if folder:
            tree.make_directory(folder)
        old = tree.find(self.path)
        if old is not None and not (old.kind is self.kind is EntryKind.FOLDER):
            tree.remove(self.path)
        if self.kind is EntryKind.FOLDER:
            tree.make_directory(self.path)
        elif self.kind is EntryKind.LINK:
            tree.create_link(self.path, self.target)
        elif self.is_same and _is_link(tree, self.target):
            tree.create_link(self.path, tree.read_link(self.target))
        else:
            with (
                tree.open_file(self.target) if self.is_same else self.open() as content,
                tree.create_file(self.path) as file,
            ):
                shutil.copyfileobj(content, file, 1 << 20)
                file.flush()
                os.fchmod(file.fileno(), 0o755 if self.executable else 0o644)
                if self.mtime is not None:
                    os.utime(file.fileno(), (self.mtime, self.mtime))


def _is_link(tree: UntrustedTree, path: str) -> bool:
    found = tree.find(path)
    return found is not None and found.kind is EntryKind.LINK


def unpack_source(archive: BinaryIO, name: str, to: Path) -> None:
    """Unpack an archive of sources, without a single top directory.

    Links that lead out of it, and devices, are refused.
    """
    whole = to.with_name(f"{to.name}.unpacked")
    for folder in (whole, to):
        remove_tree(folder)
    whole.mkdir(parents=True)
    with refused_by_name(name):
        with UntrustedTree(whole) as tree:
            for member in archive_members(archive):
                member.write_to(tree)
            top = tree.entries()
        is_wrapped = len(top) == 1 and top[0].kind is EntryKind.FOLDER
        (whole / top[0].path if is_wrapped else whole).rename(to)
        remove_tree(whole)
        with UntrustedTree(to) as tree:
            _refuse_leaving_links(tree)


@contextmanager
def refused_by_name(name: str) -> Iterator[None]:
    """Turn errors in an archive into a HostError that names the archive."""
    try:
        yield
    except _DAMAGED as error:
        msg = f"`{name}` can't be unpacked: {str(error) or type(error).__name__}"
        hint = "is it an undamaged .tar, .tar.gz, .tar.bz2, .tar.xz, .tar.zst or .zip archive?"
        raise HostError(msg, hint=hint) from error
    except HostError as error:
        msg = f"`{name}` is not unpacked: {error}"
        hint = "devices, and members and links that lead out of the archive, are refused"
        raise HostError(msg, hint=hint) from error
    except OSError as error:
        if is_full(error):
            raise
        msg = f"`{name}` can't be unpacked: {error}"
        raise HostError(msg, hint="it is damaged: get it again") from error


def archive_members(archive: BinaryIO) -> Iterator[ArchiveMember]:
    """Yield the members of a zip or tar archive with any compression."""
    archive.seek(0)
    start = archive.read(8)
    archive.seek(0)
    if start.startswith(_ZIP):
        yield from _zip_members(archive)
        return
    for magic, decompressor in _COMPRESSIONS.items():
        if start.startswith(magic):
            archive = cast("BinaryIO", decompressor(archive))
    yield from _tar_members(archive)


class _BoundedHeaders:
    """A tar archive that is refused if a member's header is too large."""

    def __init__(self, archive: BinaryIO) -> None:
        self._archive = archive
        self._done = self._next = 0

    def read(self, size: int) -> bytes:
        data = self._archive.read(size)
        self._done += len(data)
        self._refuse(self._done - self._next - size)
        return data

    def expect(self, tar: tarfile.TarFile) -> None:
        """Allow reading the member whose header was read, up to the next header."""
        self._next = tar.offset
        self._refuse(sum(len(name) + len(text) for name, text in tar.pax_headers.items()))

    def _refuse(self, size: int) -> None:
        if size > _LARGEST_HEADER:
            msg = f"it has a header of more than {_LARGEST_HEADER:,} bytes"
            raise HostError(msg)


def _tar_members(archive: BinaryIO) -> Iterator[ArchiveMember]:
    kinds = {
        **dict.fromkeys(tarfile.REGULAR_TYPES, EntryKind.FILE),
        tarfile.LNKTYPE: EntryKind.FILE,
        tarfile.SYMTYPE: EntryKind.LINK,
        tarfile.DIRTYPE: EntryKind.FOLDER,
    }
    bounded = _BoundedHeaders(archive)
    with tarfile.open(fileobj=cast("BinaryIO", bounded), mode="r|") as tar:
        for info in tar:
            bounded.expect(tar)
            tar.members.clear()  # type: ignore[attr-defined]  # tarfile keeps them all
            if info.size < 0:
                msg = f"`{info.name}` has {info.size} bytes"
                raise HostError(msg)
            path = _plain(info.name)
            if not path:
                continue
            yield ArchiveMember(
                path,
                kinds.get(info.type, EntryKind.SPECIAL),
                open=partial(_open_in, tar, info),
                executable=bool(info.mode & 0o100),
                mtime=info.mtime,
                target=_plain(info.linkname) if info.islnk() else info.linkname,
                is_same=info.islnk(),
                size=info.size,
            )


def _zip_members(archive: BinaryIO) -> Iterator[ArchiveMember]:
    kinds = {0: EntryKind.FILE, stat.S_IFREG: EntryKind.FILE, stat.S_IFLNK: EntryKind.LINK}
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            mode = info.external_attr >> 16
            kind = kinds.get(stat.S_IFMT(mode), EntryKind.SPECIAL)
            kind = EntryKind.FOLDER if info.is_dir() else kind
            yield ArchiveMember(
                _plain(info.filename),
                kind,
                open=partial(zipped.open, info),
                executable=bool(mode & 0o100),
                target=_link_in(zipped, info) if kind is EntryKind.LINK else "",
                size=info.file_size,
            )


def _open_in(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    return tar.extractfile(info) or BytesIO()


def _link_in(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    with zipped.open(info) as content:
        return content.read(_LONGEST_LINK).decode()


def _plain(path: str) -> str:
    """Return a path without `.` and doubled `/`; refuse an absolute one."""
    if path.startswith("/"):
        msg = f"`{path}` is an absolute path"
        raise HostError(msg)
    return "/".join(name for name in path.split("/") if name not in ("", "."))


def _refuse_leaving_links(tree: UntrustedTree) -> None:
    """Refuse links that lead out of a tree, and rewrite links that use `..` after a name.

    A link `a/../b` would be above its directory if `a` were a link; it becomes `b`.
    """
    for entry in tree.walk():
        if entry.kind is EntryKind.LINK:
            target = tree.read_link(entry.path)
            plain = posixpath.normpath(target)
            end = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), plain))
            if plain.startswith("/") or end == ".." or end.startswith("../"):
                msg = f"the link `{entry.path}` leads out of it, to `{target}`"
                raise HostError(msg)
            if plain != target:
                tree.create_link(entry.path, plain)
