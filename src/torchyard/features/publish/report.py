"""Packages that were published, or promoted."""

from collections.abc import Sequence
from typing import Literal, Self

from torchyard.model.quantity import show_count, show_size
from torchyard.model.values import Reported
from torchyard.publish.staged import Package
from torchyard.publish.submit import Submitted
from torchyard.terminal.tables import Lines, folded, number, styled, table, word


class PublishedFile(Reported, kw_only=True):
    """A file: where it is, and whether it is new there. No variant: it fits all of them."""

    file: str
    part: str
    variant: str
    release: str
    sha256: str
    bytes: int
    new: bool


class PublishReport(Reported, kw_only=True):
    """`torchyard publish --json` and `channel promote --json`.

    `generation` is the channel's, from which a rollback counts.
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
        """Return the report of what was done to a channel, or would be."""
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
    """Show how many files are new in each part, and how many were there already."""
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
        yield styled(f"note: {note}")


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
