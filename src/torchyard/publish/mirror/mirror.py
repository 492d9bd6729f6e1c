"""Copy a subset of another simple index into a channel.

Files are verified and uploaded on arrival; at the end, one change publishes all of them. After a
killed run, uploaded files are reused and partial downloads resumed.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from torchyard.errors import Diagnostic, ElsewhereError, HostError, PublishError, SelectionError
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import redact_url
from torchyard.host.locks import locked
from torchyard.index.entry import Entry, State, package_key
from torchyard.index.simple.read import FileLink
from torchyard.index.simple.section import SimpleSection, required_torch
from torchyard.package.delivered import PROVENANCE
from torchyard.package.wheel.about import read_about
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.package.wheel.name import is_wheel_name
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import parse_part
from torchyard.publish.index_check.files import strong_hash
from torchyard.publish.index_check.simple import read_pages
from torchyard.publish.mirror.fetch import fetch_link
from torchyard.publish.mirror.select import MirrorFile, MirrorRequest, choose_files, parse_selects
from torchyard.publish.provenance import LARGEST_PROVENANCE, check_provenance
from torchyard.publish.publish import add
from torchyard.publish.staged import METADATA, Package, refuse_unsound
from torchyard.publish.upload import FILES, upload
from torchyard.store.objects import Identity, ObjectMeta
from torchyard.terminal.progress import ProgressLine

Fate = Literal["new", "sent", "there"]
"""To fetch; uploaded by an earlier run, but unpublished; or already published."""


class Mirrored(NamedTuple):
    """A requested file, its state, and its entry in the channel."""

    chosen: MirrorFile
    fate: Fate
    entry: Entry | None = None


class Taken(NamedTuple):
    """All requested files with their entries, and the channel's new head."""

    head: Head
    files: list[Mirrored]


class Mirror:
    """Copies files from one index into one channel."""

    def __init__(self, source: str, channel: Channel, spool: Path, now: str) -> None:
        """The spool keeps partial downloads, even after a killed run."""
        self._source = source
        self._reach = Fetcher(source)
        self._channel = channel
        self._spool = spool
        self._now = now
        self._seen = 0
        self.notes: list[str] = []

    def look(self, wanted: MirrorRequest, *, unhashed: bool) -> list[Mirrored]:
        """Return all requested files with their states."""
        chosen = [
            file
            for project, requirements in parse_selects(wanted.selects).items()
            for file in choose_files(project, self._files(project), requirements, wanted)
        ]
        if not chosen:
            msg = f"{redact_url(self._source)} has no file for {', '.join(wanted.selects)}"
            raise SelectionError(msg, hint="`--dry-run` with fewer conditions lists more files")
        bare = [file.link.file for file in chosen if strong_hash(file.link.hashes) is None]
        if bare and not unhashed:
            hint = "--allow-unhashed accepts any bytes, and records their hash"
            why = "it cannot be verified"
            raise PublishError.of(
                [
                    Diagnostic(f"the index has no sha256 of `{file}`: {why}", None, hint)
                    for file in bare
                ]
            )
        head = self._channel.head()
        self._seen = head.generation
        known = {
            (project, entry.file, entry.variant): entry
            for project in dict.fromkeys(file.project for file in chosen)
            for entry in self._channel.state(head, _part(project)).entries
        }
        with ThreadPoolExecutor(FILES) as pool:
            return list(pool.map(partial(self._fate, known), chosen))

    def _files(self, project: str) -> Sequence[FileLink]:
        pages = read_pages(self._reach, project, f"{self._source}{project}/")
        if pages.html is None and pages.json is None:
            msg = f"{redact_url(self._source)} has no project `{project}`"
            raise SelectionError(msg, hint="name the address of the list of projects")
        return pages.files

    def _fate(self, there: Mapping[tuple[str, str, str], Entry], chosen: MirrorFile) -> Mirrored:
        link = chosen.link
        known = there.get((chosen.project, link.file, chosen.variant))
        digest = link.hashes.get("sha256")
        if known is not None:
            if digest not in (None, known.sha256):
                source = redact_url(self._source)
                msg = f"the channel has a `{link.file}` with other bytes than {source}"
                raise PublishError(msg, hint="one of the two is wrong; files are never replaced")
            return Mirrored(chosen, "there", known)
        if digest is None:
            return self._new(chosen)
        key = package_key(digest, link.file)
        meta = self._sent(key, link, digest)
        sidecar = self._channel.objects.read(f"{key}{METADATA}") if meta else None
        provenance = bool(link.provenance)
        if (
            meta is None
            or (not sidecar and is_wheel_name(link.file))
            or (provenance and self._channel.objects.head(f"{key}{PROVENANCE}") is None)
        ):
            return self._new(chosen)
        entry = self._entry(chosen, digest, meta.size, sidecar or b"", provenance=provenance)
        return Mirrored(chosen, "sent", entry)

    def _sent(self, key: str, link: FileLink, digest: str) -> ObjectMeta | None:
        """Return the package uploaded by an earlier run, if complete."""
        meta = self._channel.objects.head(key)
        if meta is None:
            return None
        size = meta.size if link.size is None else link.size
        return meta if self._channel.objects.holds(key, Identity(size, digest)) else None

    def _new(self, chosen: MirrorFile) -> Mirrored:
        """Return a file to fetch; HTML has no sizes, so ask the server."""
        link = chosen.link
        if link.size is None:
            answer = self._reach.head(link.url)
            size = answer.size if answer.found else None
            chosen = chosen._replace(link=msgspec.structs.replace(link, size=size))
        return Mirrored(chosen, "new")

    def _entry(
        self, chosen: MirrorFile, digest: str, size: int, metadata: bytes, *, provenance: bool
    ) -> Entry:
        link = chosen.link
        return Entry(
            file=link.file,
            version=chosen.version,
            variant=chosen.variant,
            sha256=digest,
            size=size,
            uploaded=link.uploaded or self._now,
            requires_python=_requires_python(link, metadata),
            metadata=sha256(metadata).hexdigest() if metadata else "",
            yanked=link.yanked,
            provenance=provenance,
            torch=required_torch(metadata),
        )

    def take(self, files: Sequence[Mirrored], reason: ChangeReason) -> Taken:
        """Fetch and upload new files, then publish all of them in one change."""
        fresh = [file.chosen for file in files if file.fate == "new"]
        total = sum(file.link.size or 0 for file in fresh)
        self._spool.mkdir(parents=True, exist_ok=True)
        with (
            locked(self._spool / ".lock", wait=True),
            ProgressLine(f"fetching {len(fresh)} files", total) as progress,
            ThreadPoolExecutor(FILES) as pool,
        ):
            try:
                got = list(pool.map(partial(self._take, heard=progress), fresh))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        wrong = [
            d for result in got if isinstance(result, PublishError) for d in result.diagnostics
        ]
        if wrong:
            raise PublishError.of(wrong)
        entries = {
            id(c): entry for c, entry in zip(fresh, got, strict=True) if isinstance(entry, Entry)
        }
        done = [file._replace(entry=file.entry or entries[id(file.chosen)]) for file in files]
        head = self._publish(done, reason)
        return Taken(head, done)

    def _publish(self, files: Sequence[Mirrored], reason: ChangeReason) -> Head:
        parts: dict[str, list[tuple[MirrorFile, Entry]]] = {}
        keys: list[str] = []
        for chosen, _, entry in files:
            if entry is not None:
                parts.setdefault(_part(chosen.project), []).append((chosen, entry))
                keys.append(package_key(entry.sha256, entry.file))
        edits: dict[str, Edit] = {part: partial(_add, part, found) for part, found in parts.items()}
        return self._channel.commit(edits, reason, partial(self._sure, keys))

    def _take(self, chosen: MirrorFile, heard: ProgressLine) -> Entry | PublishError:
        """Fetch and upload a file; return an error, so that others continue."""
        link = chosen.link
        folder = self._spool / sha256(f"{link.url} {link.hashes}".encode()).hexdigest()[:32]
        try:
            fetched = fetch_link(self._reach, link, folder, heard)
            metadata = _metadata(chosen, fetched.path)
            provenance = self._provenance(chosen, fetched.sha256)
        except PublishError as error:
            shutil.rmtree(folder)
            return error
        entry = self._entry(
            chosen, fetched.sha256, fetched.size, metadata, provenance=bool(provenance)
        )
        package = Package(
            fetched.path, _part(chosen.project), entry, chosen.project, (), (), metadata, provenance
        )
        upload(self._channel.objects, [package])
        shutil.rmtree(folder)
        return entry

    def _provenance(self, chosen: MirrorFile, digest: str) -> bytes:
        """Return the provenance of a file; note one that can't be verified, and leave it out."""
        link = chosen.link
        if not link.provenance:
            return b""
        answer = self._reach.get(link.provenance, most=LARGEST_PROVENANCE)
        if not answer.found:
            msg = f"the provenance of `{link.file}` is not where its index says"
            raise PublishError(msg, hint=f"report it to the operator of {redact_url(link.url)}")
        try:
            check_provenance(link.file, answer.data, digest)
        except (HostError, PublishError) as error:
            self.notes.append(f"{error}; it is not copied")
            return b""
        return answer.data

    def _sure(self, keys: Iterable[str], now: Head) -> Head:
        """Check that uploaded files still exist; a concurrent prune may have deleted them."""
        if now.generation != self._seen:
            for key in keys:
                if self._channel.objects.head(key) is None:
                    msg = f"`{key}` was just deleted by another process"
                    raise ElsewhereError(msg, hint="run the same command again", reason="busy")
        return now


def _part(project: str) -> str:
    return f"{SimpleSection.NAME}/{project}"


def _requires_python(link: FileLink, metadata: bytes) -> str:
    """Return `Requires-Python` from a wheel's METADATA, or for other files, from the index."""
    if not metadata:
        return link.requires_python
    return "".join(values(fields_of(metadata), "Requires-Python")[:1])


def _metadata(chosen: MirrorFile, path: Path) -> bytes:
    """Return the METADATA of a wheel, which must match its sidecar in the index.

    Refuse a wheel that is ambiguous, or with members that lead elsewhere.
    """
    link = chosen.link
    if not is_wheel_name(link.file):
        return b""
    refuse_unsound(path)
    text, fault = read_about(path)
    if text is None:
        msg = f"`{link.file}` is no installable wheel: {fault or 'no METADATA'}"
        raise PublishError(msg, hint="exclude it")
    promised = (link.metadata or {}).get("sha256")
    if promised not in (None, sha256(text).hexdigest()):
        msg = f"`{link.file}` has another METADATA than its index promises"
        raise PublishError(msg, hint=f"report it to the operator of {redact_url(link.url)}")
    return text


def _add(part: str, found: Sequence[tuple[MirrorFile, Entry]], state: State) -> State:
    """Return a state with these files, yanked if yanked in the source."""
    known = {(entry.file, entry.variant): entry for entry in state.entries}
    fresh = [entry for _, entry in found if not _has(known.get((entry.file, entry.variant)), entry)]
    state = add(parse_part(part), state, fresh)
    yanked = dict(_yanked(found))
    entries = tuple(
        msgspec.structs.replace(entry, yanked=yanked[entry.file, entry.variant])
        if entry.yanked is None and (entry.file, entry.variant) in yanked
        else entry
        for entry in state.entries
    )
    if all(entry is other for entry, other in zip(entries, state.entries, strict=True)):
        return state
    return msgspec.structs.replace(state, entries=entries)


def _has(known: Entry | None, entry: Entry) -> bool:
    return known is not None and known.sha256 == entry.sha256


def _yanked(found: Iterable[tuple[MirrorFile, Entry]]) -> Iterator[tuple[tuple[str, str], str]]:
    for chosen, entry in found:
        if chosen.link.yanked is not None:
            yield (entry.file, entry.variant), chosen.link.yanked
