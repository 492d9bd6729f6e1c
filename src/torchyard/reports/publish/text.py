"""Published files, for people."""

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.model.quantity import show_count, show_size
from torchyard.reports.publish.document import PublishDocument, PublishedFileDocument
from torchyard.terminal.tables import folded, number, table, word


def publish_report(document: PublishDocument) -> RenderableType:
    """Show how many files are new in each part, and how many were there already."""
    rows: dict[tuple[str, str, str], list[PublishedFileDocument]] = {}
    for file in document.files:
        rows.setdefault((file.part, file.variant, file.release), []).append(file)
    columns = (word("part"), folded("variant"), folded("version"))
    made = table((*columns, *map(number, ("new", "there", "size"))), tight=True)
    for (part, variant, release), files in sorted(rows.items()):
        new = sum(file.new for file in files)
        size = show_size(sum(file.bytes for file in files))
        made.add_row(part, variant or "all", release, str(new), str(len(files) - new), size)
    return Group(made, "", Text(_sum(document)), *(Text(f"note: {n}") for n in document.notes))


def _sum(document: PublishDocument) -> str:
    new = sum(file.new for file in document.files)
    there = len(document.files) - new
    verb = "would be" if document.dry_run else "is" if new == 1 else "are"
    what = f"{show_count(new, 'file')} {verb} new"
    beside = f", {there:,} there already" if there else ""
    partial = "; not all of the plan" if document.partial else ""
    generation = "" if document.dry_run else f"generation {document.generation}, "
    return f"{document.channel}: {generation}{what}{beside}{partial}"
