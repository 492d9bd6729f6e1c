"""The table of ROCm releases."""

from functools import cache

from torchyard.compute.table import ComputeRow, ComputeTable, load_compute_table


@cache
def rocm_table() -> ComputeTable[ComputeRow]:
    """Return the table, read once."""
    return load_compute_table("rocm", ComputeRow)
