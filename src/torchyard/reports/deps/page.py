"""The dependencies of a tree as one page that stands alone."""

from torchyard.reports.deps.document import DepsDocument
from torchyard.reports.deps.text import deps_table, read_at
from torchyard.reports.templates import Filters, render_template

DEPS_FILTERS: Filters = {"read_at": read_at}
"""What the part `deps_part.html` uses."""


def deps_page(document: DepsDocument) -> str:
    """Write the page."""
    return render_template("deps.html", DEPS_FILTERS, **deps_values(document))


def deps_values(document: DepsDocument) -> dict[str, object]:
    """Return what the part `deps_part.html` shows."""
    places, rows = deps_table(document)
    return {"document": document, "places": places, "rows": rows}
