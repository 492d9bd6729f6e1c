"""The dependencies of a tree as one page that stands alone."""

from torchyard.reports.deps.document import DepsDocument
from torchyard.reports.deps.text import deps_table, read_at
from torchyard.reports.templates import render_template


def deps_page(document: DepsDocument) -> str:
    """Write the page."""
    places, rows = deps_table(document)
    return render_template(
        "deps.html", {"read_at": read_at}, document=document, places=places, rows=rows
    )
