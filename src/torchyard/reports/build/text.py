"""The packages of a build, for people."""

from collections.abc import Iterable

from rich.console import RenderableType

from torchyard.model.quantity import show_duration, show_size
from torchyard.terminal.tables import SHORT, folded, number, table, word

Row = tuple[str, str, float, int, str]
"""Job, outcome, seconds, bytes, sha256."""


def build_report(project: str, rows: Iterable[Row]) -> RenderableType:
    """List the packages of a project with their outcomes."""
    columns = (folded(f"package of {project}"), word("outcome"), number("time"), number("size"))
    made = table((*columns, word("sha256")))
    styles = {"failed": "red", "skipped": "yellow", "cached": "dim"}
    for job, outcome, seconds, size, digest in rows:
        made.add_row(
            job.partition("/")[2],
            outcome,
            show_duration(seconds) if seconds else "–",
            show_size(size) if size else "–",
            digest[:SHORT] or "–",
            style=styles.get(outcome, ""),
        )
    return made
