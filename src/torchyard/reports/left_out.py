"""Files of a source directory that are no part of the source, as text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchyard.terminal.tables import folded, table, word

if TYPE_CHECKING:  # slow to import
    from rich.table import Table

_LISTED = 12
"""The most paths to list; others are counted."""


def left_out_table(paths: Mapping[str, str]) -> "Table":
    """List omitted paths by reason."""
    rows = []
    for why in sorted(set(paths.values())):
        names = [path for path, reason in paths.items() if reason == why]
        more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
        rows.append((f"{', '.join(names[:_LISTED])}{more}", f"{why} it"))
    return table((folded("not in the source"), word("why")), rows)
