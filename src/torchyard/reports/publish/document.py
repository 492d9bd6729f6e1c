"""What `torchyard publish --json` prints, and what a publish job leaves."""

from collections.abc import Iterable
from typing import Literal

from torchyard.model.values import Reported
from torchyard.publish.staged import Package


class PublishedFileDocument(Reported, kw_only=True):
    """A file: where it is, and whether it is new there. No variant: it fits all of them."""

    file: str
    part: str
    variant: str
    release: str
    sha256: str
    bytes: int
    new: bool


class PublishDocument(Reported, kw_only=True):
    """`torchyard publish --json`: `generation` is the channel's, from which a rollback counts."""

    version: Literal[1] = 1
    channel: str
    generation: int
    dry_run: bool
    partial: bool
    notes: list[str]
    files: list[PublishedFileDocument]


def publish_document(  # noqa: PLR0913 - what was done, where, and how
    channel: str,
    generation: int,
    packages: Iterable[Package],
    new: Iterable[Package],
    *,
    notes: Iterable[str] = (),
    partial: bool = False,
    dry_run: bool = False,
) -> PublishDocument:
    fresh = {id(package) for package in new}
    return PublishDocument(
        channel=channel,
        generation=generation,
        dry_run=dry_run,
        partial=partial,
        notes=list(notes),
        files=[
            PublishedFileDocument(
                file=package.entry.file,
                part=package.part,
                variant=package.entry.variant,
                release=package.entry.version,
                sha256=package.entry.sha256,
                bytes=package.entry.size,
                new=id(package) in fresh,
            )
            for package in packages
        ],
    )
