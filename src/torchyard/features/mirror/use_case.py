"""Copy a part of another simple index into a channel."""

from collections.abc import Sequence
from pathlib import Path

from torchyard.features.mirror.report import MirroredFile, MirrorReport
from torchyard.host.fetcher import directory_url
from torchyard.host.http import redact_url
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.mirror.mirror import Mirror
from torchyard.publish.mirror.select import MirrorRequest, check_python, check_variant
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import home_directory, open_channel


def mirror_index(
    source: str,
    channel: str,
    *,
    selectors: Sequence[str],
    pythons: Sequence[str] = (),
    platforms: Sequence[str] = (),
    variant: str | None = None,
    unhashed: bool = False,
    dry_run: bool = False,
    file: str = "torchyard.toml",
) -> MirrorReport:
    """Copy files of a simple index into a channel, all at once.

    Args:
        source: The address or directory of the index.
        channel: The channel: its name in the file, its address or its directory.
        selectors: Requirements that name the files, such as `torch==2.13.*`.
        pythons: Only files for these Pythons.
        platforms: Only files for these platforms.
        variant: The variant of all files, regardless of their versions.
        unhashed: Also accept files without hashes.
        dry_run: Only report what would be copied.
        file: The configuration that names channels.
    """
    wanted = MirrorRequest(
        selects=tuple(selectors),
        pythons=tuple(map(check_python, pythons)),
        platforms=tuple(platforms),
        variant=None if variant is None else check_variant(variant),
    )
    address, now = directory_url(source), current_moment()
    opened = open_channel(channel, file, make=True)
    mirror = Mirror(address, opened, Path(home_directory(file), "mirror"), now)
    files = mirror.look(wanted, unhashed=unhashed)
    generation = 0
    if not dry_run:
        why = f"mirror {', '.join(selectors)} of {redact_url(address)}"
        head, files = mirror.take(files, ChangeReason(why, now))
        generation = head.generation
    return MirrorReport(
        source=redact_url(address),
        channel=opened.url,
        generation=generation,
        notes=sorted(set(mirror.notes)),
        files=[
            MirroredFile(
                project=file.chosen.project,
                file=file.chosen.link.file,
                release=file.chosen.version,
                variant=file.chosen.variant,
                bytes=file.entry.size if file.entry else file.chosen.link.size,
                fate=file.fate,
                yanked=file.chosen.link.yanked is not None,
            )
            for file in files
        ],
    )
