"""What `torchyard mirror --json` prints."""

from collections.abc import Iterable
from typing import Literal

from torchyard.model.values import Reported
from torchyard.publish.mirror.mirror import Fate, Mirrored


class MirroredDocument(Reported, kw_only=True):
    """A file: a `new` one is fetched, one that is `sent` came by an earlier run."""

    project: str
    file: str
    release: str
    variant: str
    bytes: int | None
    fate: Fate
    yanked: bool


class MirrorDocument(Reported, kw_only=True):
    """`torchyard mirror --json`. The generation is that of the channel, 0 if nothing was done."""

    version: Literal[1] = 1
    source: str
    channel: str
    generation: int
    files: list[MirroredDocument]


def mirror_document(
    source: str, channel: str, generation: int, files: Iterable[Mirrored]
) -> MirrorDocument:
    return MirrorDocument(
        source=source,
        channel=channel,
        generation=generation,
        files=[
            MirroredDocument(
                project=one.chosen.project,
                file=one.chosen.link.file,
                release=one.chosen.version,
                variant=one.chosen.variant,
                bytes=one.entry.size if one.entry else one.chosen.link.size,
                fate=one.fate,
                yanked=one.chosen.link.yanked is not None,
            )
            for one in files
        ],
    )
