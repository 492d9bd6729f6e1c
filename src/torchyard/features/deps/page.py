"""The dependencies of a tree as a self-contained page, and as Markdown."""

from torchyard.features.deps.report import DepsReport, deps_table, read_at
from torchyard.host.own_files import WRITTEN
from torchyard.reports.picture import PICTURE_FILTERS
from torchyard.reports.templates import Filters, render_template
from torchyard.terminal.untrusted import printable

DEPS_FILTERS: Filters = {**PICTURE_FILTERS, "read_at": read_at}
"""Filters of the template `deps_part.html`."""


def deps_html(document: DepsReport) -> str:
    """Write the page."""
    return render_template("deps.html", DEPS_FILTERS, **deps_values(document))


def deps_values(document: DepsReport) -> dict[str, object]:
    """Return the values of the template `deps_part.html`."""
    sources, rows = deps_table(document)
    return {"document": document, "sources": sources, "rows": rows}


def deps_markdown(document: DepsReport) -> str:
    """Return the table and the disagreements as Markdown."""
    sources, rows = deps_table(document)
    lines = [f"<!-- {WRITTEN} -->"]
    lines.append(_row("Dependency", *(source.value.capitalize() for source in sources), "Read at"))
    lines.append(_row(*["---"] * (len(sources) + 2)))
    lines += [_row(row.name, *cells, f"`{read_at(row)}`") for row, cells in rows]
    lines += [""] if document.drift else []
    for drift, read in document.folded_drift():
        what = f"- {drift.severity.value}: **{drift.dependency}**: {_escaped(drift.what)}"
        lines.append(f"{what} ({', '.join(f'`{line}`' for line in read)})")
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
