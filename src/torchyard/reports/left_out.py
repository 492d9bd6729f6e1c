"""What is in a source directory and no part of the source, for people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchyard.terminal.tables import folded, table, word

if TYPE_CHECKING:  # slow to import
    from rich.table import Table

_LISTED = 12
"""How many paths have a name before the others are only counted."""


def left_out_table(paths: Mapping[str, str]) -> "Table":
    """List paths by why they are left out."""
    rows = []
    for why in sorted(set(paths.values())):
        names = [path for path, reason in paths.items() if reason == why]
        more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
        rows.append((f"{', '.join(names[:_LISTED])}{more}", f"{why} it"))
    return table((folded("not in the source"), word("why")), rows)
