"""What a build made, as people read it."""

from collections.abc import Iterable

from rich.console import RenderableType

from torchyard.model.quantity import show_duration, show_size
from torchyard.reports.tables import SHORT, plain_table

Row = tuple[str, str, float, int, str]
"""Job, outcome, seconds, bytes, sha256."""


def build_report(project: str, rows: Iterable[Row]) -> RenderableType:
    """Each package of a project with what became of it."""
    table = plain_table()
    table.add_column(f"package of {project}", overflow="fold")
    table.add_column("outcome", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("sha256", no_wrap=True)
    styles = {"failed": "red", "skipped": "yellow", "cached": "dim"}
    for job, outcome, seconds, size, digest in rows:
        table.add_row(
            job.partition("/")[2],
            outcome,
            show_duration(seconds) if seconds else "–",
            show_size(size) if size else "–",
            digest[:SHORT] or "–",
            style=styles.get(outcome, ""),
        )
    return table
