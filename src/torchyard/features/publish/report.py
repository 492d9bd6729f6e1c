"""Published or promoted packages."""

from collections.abc import Sequence
from typing import Literal, Self

from torchyard.model.quantity import show_count, show_size
from torchyard.model.values import Reported
from torchyard.publish.staged import Package
from torchyard.publish.submit import Submitted
from torchyard.terminal.tables import Lines, folded, number, styled, table, word
from torchyard.terminal.untrusted import printable


class PublishedFile(Reported, kw_only=True):
    """A file: its path, and whether it is new; without a variant, it is for all of them."""

    file: str
    part: str
    variant: str
    release: str
    sha256: str
    bytes: int
    new: bool


class PublishReport(Reported, kw_only=True):
    """`torchyard publish --json` and `channel promote --json`.

    `generation` is the channel's, for a rollback.
    """

    version: Literal[1] = 1
    channel: str
    generation: int
    dry_run: bool
    partial: bool
    notes: Sequence[str]
    files: list[PublishedFile]

    @classmethod
    def of(
        cls, channel: str, done: Submitted, *, partial: bool = False, dry_run: bool = False
    ) -> Self:
        """Return the report of a channel's change, or of a dry run."""
        new = {id(package) for package in done.new}
        return cls(
            channel=channel,
            generation=done.generation,
            dry_run=dry_run,
            partial=partial,
            notes=done.notes,
            files=[_file(package, is_new=id(package) in new) for package in done.packages],
        )


def _file(package: Package, *, is_new: bool) -> PublishedFile:
    entry = package.entry
    return PublishedFile(
        file=entry.file,
        part=package.part,
        variant=entry.variant,
        release=entry.version,
        sha256=entry.sha256,
        bytes=entry.size,
        new=is_new,
    )


def publish_text(report: PublishReport) -> Lines:
    """Show the numbers of new and existing files in each part."""
    rows: dict[tuple[str, str, str], list[PublishedFile]] = {}
    for file in report.files:
        rows.setdefault((file.part, file.variant or "all", file.release), []).append(file)
    columns = (word("part"), folded("variant"), folded("version"))
    yield table(
        (*columns, *map(number, ("new", "there", "size"))),
        ((*row, *_counts(files)) for row, files in sorted(rows.items())),
        tight=True,
    )
    yield ""
    yield styled(_sum(report))
    for note in report.notes:
        yield styled(f"note: {printable(note)}")


channel_promote_text = publish_text


def _counts(files: Sequence[PublishedFile]) -> tuple[str, str, str]:
    new = sum(file.new for file in files)
    return str(new), str(len(files) - new), show_size(sum(file.bytes for file in files))


def _sum(report: PublishReport) -> str:
    new = sum(file.new for file in report.files)
    there = len(report.files) - new
    verb = "would be" if report.dry_run else "is" if new == 1 else "are"
    what = f"{show_count(new, 'file')} {verb} new"
    beside = f", {there:,} there already" if there else ""
    partial = "; not all of the plan" if report.partial else ""
    generation = "" if report.dry_run else f"generation {report.generation}, "
    return f"{report.channel}: {generation}{what}{beside}{partial}"
