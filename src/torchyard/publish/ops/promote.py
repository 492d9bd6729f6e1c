"""Promotion from one channel to another: the same bytes, by their digests, never rebuilt.

A wheel or zip is only rewritten to drop a local version (`+cu130`): members that contain the
version change, all others are copied. The entry names the original file.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Literal, NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from torchyard.errors import CheckError, Diagnostic, HostError, PublishError, StoreError
from torchyard.index.entry import Entry
from torchyard.index.sections import section_of
from torchyard.index.simple.section import wheel_requirements
from torchyard.model.quantity import listed
from torchyard.package.delivered import PROVENANCE, STATEMENT
from torchyard.package.repair.operations import Reversion
from torchyard.package.repair.repair import new_name, repair
from torchyard.package.repair.retag import metadata_text, new_version
from torchyard.package.statement import check_statement
from torchyard.package.wheel.name import is_wheel_name
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import key_of, parse_part
from torchyard.publish.provenance import check_provenance
from torchyard.publish.publish import Published, in_order, news, switch
from torchyard.publish.select import Chosen, Selection, choose, project_of
from torchyard.publish.staged import (
    METADATA,
    Package,
    digests_of,
    refuse_unsound,
)
from torchyard.publish.upload import FILES, holds_all, keys_of, upload
from torchyard.store.makers import Trust
from torchyard.store.objects import LARGEST_COPY, Objects

Local = Literal["keep", "drop"]
"""Whether versions keep local parts such as `+cu130`."""

_DROP = Reversion(local="")


class Promotion(NamedTuple):
    """A package of another channel, in its new form for this one."""

    origin: Chosen
    package: Package
    """A file exists at its path only if rewritten."""
    note: str = ""
    """Why its provenance or statement is left out."""


class Route(NamedTuple):
    """Source and target channels, and a directory for temporary files."""

    source: Channel
    target: Channel
    scratch: Path


def head_for(source: Channel, target: Channel, name: str) -> Head:
    """Return the head of a target; a new channel names variants like the source."""
    head, grouping = target.head(), source.head().grouping
    if not head.generation:
        name = "" if "/" in name else name
        return msgspec.structs.replace(head, name=name, grouping=grouping)
    if head.grouping != grouping:
        msg = (
            f"`{source.url}` calls variants after {grouping}, `{target.url}` after {head.grouping}"
        )
        raise PublishError(msg, hint="promote into a channel of the same kind")
    return head


def gather_packages(
    source: Channel, selection: Selection, at: str, trust: Trust | None = None
) -> list[Promotion]:
    """Return all selected packages with their sidecars; refuse yanked ones.

    Without trust, no statement of a package's origin is proven, and none is promoted.
    """
    head = source.head()
    chosen = choose(source, head, selection)
    refused = [*_refused(source, head, chosen)]
    if refused:
        raise PublishError.of(refused)
    sidecars: dict[str, bytes] = {}
    found = [_promotion(source.objects, file, at, sidecars) for file in chosen]
    return [_with_statement(source.objects, promotion, trust) for promotion in found]


def _refused(source: Channel, head: Head, chosen: Iterable[Chosen]) -> Iterator[Diagnostic]:
    taken: dict[str, list[str]] = {}
    for _, entry in chosen:
        if entry.yanked is not None:
            taken.setdefault(entry.yanked or "no reason is given", []).append(entry.file)
    for reason, files in taken.items():
        was = "was" if len(files) == 1 else "were"
        what = f"{listed(files)} {was} yanked: {reason}"
        yield Diagnostic(what, hint="exclude them, or `torchyard channel yank --undo` them first")
    for part in dict.fromkeys(file.part for file in chosen):
        if source.state(head, part).status == "quarantined":
            yield Diagnostic(f"`{part}` is quarantined", hint="make it active first")


def _promotion(objects: Objects, chosen: Chosen, at: str, sidecars: dict[str, bytes]) -> Promotion:
    part = parse_part(chosen.part)
    entry = chosen.entry
    key = key_of(part, entry)
    metadata = provenance = b""
    note = ""
    if entry.metadata:
        if entry.metadata not in sidecars:
            sidecars[entry.metadata] = _read(objects, f"{key}{METADATA}", entry.metadata)
        metadata = sidecars[entry.metadata]
    if entry.provenance:
        provenance = _read(objects, f"{key}{PROVENANCE}")
        try:
            check_provenance(entry.file, provenance, entry.sha256)
        except (HostError, PublishError) as error:
            note, provenance = f"{error}; it is not promoted", b""
    package = Package(
        path=Path(entry.file),
        part=chosen.part,
        entry=msgspec.structs.replace(entry, uploaded=at, provenance=bool(provenance)),
        name=project_of(part, entry),
        requires=part.rules.requires(entry, metadata),
        findings=(),
        metadata=metadata,
        provenance=provenance,
        cells=(entry.cell,) if entry.cell else (),
    )
    return Promotion(chosen, package, note)


def _with_statement(objects: Objects, promotion: Promotion, trust: Trust | None) -> Promotion:
    """Return a promotion with the statement of its package's origin, if it is proven."""
    part, entry = parse_part(promotion.origin.part), promotion.origin.entry
    data = objects.read(f"{key_of(part, entry)}{STATEMENT}") if trust else None
    if trust is None or data is None:
        return promotion
    try:
        check_statement(data, entry.file, entry.sha256, trust)
    except CheckError as error:
        return promotion._replace(note=f"`{entry.file}`: {error}; that is not promoted")
    return promotion._replace(package=promotion.package._replace(statement=data))


def _read(objects: Objects, key: str, digest: str = "") -> bytes:
    data = objects.read(key)
    if data is None or (digest and sha256(data).hexdigest() != digest):
        raise _damaged(objects, key)
    return data


def _damaged(objects: Objects, key: str) -> StoreError:
    msg = f"`{key}` of `{objects.url}` is missing, or does not match the channel's entry"
    return StoreError(msg, hint="`torchyard channel check --deep` finds what else is wrong there")


def without_local(route: Route, head: Head, found: Sequence[Promotion]) -> list[Promotion]:
    """Rewrite files with a local version without it.

    Files in the target that an earlier run rewrote are reused. Packages that require a dropped
    local version are refused.
    """
    refused = [*_stranded(found)]
    if refused:
        raise PublishError.of(refused)
    parts = dict.fromkeys(promotion.package.part for promotion in found)
    made = {
        (entry.promoted, entry.variant): entry
        for part in parts
        for entry in route.target.state(head, part).entries
        if entry.promoted
    }

    def drop(promotion: Promotion) -> Promotion:
        if not _has_local(promotion):
            return promotion
        entry = promotion.package.entry
        known = made.get((entry.sha256, entry.variant))
        return _relabelled(route, promotion) if known is None else _known(promotion, known)

    with ThreadPoolExecutor(FILES) as pool:
        return list(pool.map(drop, found))


def _has_local(promotion: Promotion) -> bool:
    package = promotion.package
    return "+" in package.entry.version and section_of(package.part).HAS_VARIANTS


def _stranded(found: Sequence[Promotion]) -> Iterator[Diagnostic]:
    """Yield wheels that require a local version that will be dropped."""
    losing = {promotion.package.name for promotion in found if _has_local(promotion)}
    for package in (promotion.package for promotion in found if promotion.package.metadata):
        for wanted in wheel_requirements(package.entry.file, package.metadata):
            if canonicalize_name(wanted.name) in losing and "+" in str(wanted.specifier):
                what = f"`{package.entry.file}` requires `{wanted}`, which would not exist"
                yield Diagnostic(what, hint="keep local versions, or require a public version")


def _known(promotion: Promotion, entry: Entry) -> Promotion:
    """Return the promotion of a package that the target already has."""
    metadata = _relabelled_metadata(promotion.package)
    return promotion._replace(
        package=_of_other_bytes(promotion.package)._replace(entry=entry, metadata=metadata)
    )


def _of_other_bytes(package: Package) -> Package:
    """Return a package without the sidecars that are about its former bytes."""
    return package._replace(provenance=b"", statement=b"")


def _relabelled_metadata(package: Package) -> bytes:
    version = new_version(package.entry.version, None, "")
    return metadata_text(package.metadata, version) if package.metadata else b""


def _relabelled(route: Route, promotion: Promotion) -> Promotion:
    entry = promotion.package.entry
    folder = Path(mkdtemp(dir=route.scratch))  # variants may have equal names
    old = folder / entry.file
    fetch_package(
        route.source.objects, key_of(parse_part(promotion.origin.part), entry), entry.sha256, old
    )
    path = repair(old, [_DROP], folder / "new").path
    old.unlink()
    digests = digests_of(path)
    metadata = _relabelled_metadata(promotion.package)
    new = msgspec.structs.replace(
        entry,
        file=new_name(entry.file, [_DROP]),
        version=new_version(entry.version, None, ""),
        sha256=digests.sha256,
        size=digests.size,
        metadata=sha256(metadata).hexdigest() if metadata else "",
        provenance=False,
        promoted=entry.sha256,
    )
    package = _of_other_bytes(promotion.package)._replace(path=path, entry=new, metadata=metadata)
    return promotion._replace(package=package)


def refuse_unsound_wheels(route: Route, head: Head, found: Sequence[Promotion]) -> None:
    """Raise PublishError for unsound wheels from elsewhere, such as mirrored ones.

    Wheels of a plan's cell were checked before publishing, and wheels in the target are not sent
    again.
    """
    parts = dict.fromkeys(promotion.package.part for promotion in found)
    there = {e.sha256 for part in parts for e in route.target.state(head, part).entries}

    def problems(promotion: Promotion) -> tuple[Diagnostic, ...]:
        with TemporaryDirectory(dir=route.scratch) as folder:
            path = Path(folder, promotion.origin.entry.file)
            key = key_of(parse_part(promotion.origin.part), promotion.origin.entry)
            fetch_package(route.source.objects, key, promotion.origin.entry.sha256, path)
            try:
                refuse_unsound(path)
            except PublishError as error:
                return error.diagnostics
        return ()

    foreign = [p for p in found if _is_foreign_wheel(p) and p.origin.entry.sha256 not in there]
    with ThreadPoolExecutor(FILES) as pool:
        refused = list(chain.from_iterable(pool.map(problems, foreign)))
    if refused:
        raise PublishError.of(refused)


def _is_foreign_wheel(promotion: Promotion) -> bool:
    return not promotion.origin.entry.cell and is_wheel_name(promotion.origin.entry.file)


def promote(
    route: Route, head: Head, found: Sequence[Promotion], reason: ChangeReason
) -> Published:
    """Publish packages that have passed all gates of the target; repeating is safe."""
    packages = [promotion.package for promotion in found]
    whole = {id(promotion.package): promotion for promotion in found}

    def send(batch: Iterable[Package]) -> None:
        with ThreadPoolExecutor(FILES) as pool:
            list(pool.map(partial(_carry, route), [whole[id(package)] for package in batch]))

    send(
        package
        for part, members in in_order(packages).items()
        for package in news(part, members, route.target.state(head, part))
    )
    return switch(route.target, head, packages, reason, send)


def _carry(route: Route, promotion: Promotion) -> None:
    """Copy a package and its sidecars, unless they exist."""
    source, target = route.source.objects, route.target.objects
    package, entry = promotion.package, promotion.package.entry
    key = key_of(parse_part(package.part), entry)
    if not section_of(package.part).KEYED_BY_NAME:
        if holds_all(target, package):
            return
        names = keys_of(package)
        same = entry.sha256 == promotion.origin.entry.sha256
        if same and entry.size < LARGEST_COPY and all(target.copy(name, source) for name in names):
            return
    if package.path.exists():
        upload(target, [package])
        return
    with TemporaryDirectory(dir=route.scratch) as folder:
        path = Path(folder, entry.file)
        fetch_package(source, key, entry.sha256, path)
        upload(target, [package._replace(path=path)])


def fetch_package(objects: Objects, key: str, digest: str, path: Path) -> None:
    """Download an object into a file; raise if its digest is not the expected one."""
    found = sha256()
    try:
        with path.open("wb") as file:
            for piece in objects.stream(key):
                found.update(piece)
                file.write(piece)
    except FileNotFoundError as error:
        raise _damaged(objects, key) from error
    if found.hexdigest() != digest:
        raise _damaged(objects, key)
