"""How all tables for people look."""

from rich.table import Table

SHORT = 12
"""How many digits of a fingerprint people need to tell two apart."""


def plain_table(*, header: bool = True) -> Table:
    return Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=header, header_style="bold"
    )
