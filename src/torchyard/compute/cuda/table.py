"""The table of CUDA toolkits."""

from functools import cache

from torchyard.compute.table import ComputeRow, ComputeTable, load_compute_table


class CudaRow(ComputeRow, kw_only=True):
    """A CUDA toolkit: its architectures, host compilers, and the driver that its programs need.

    `driver_family` is the oldest driver branch that runs programs of all its minor versions, with
    the features of that branch. Its headers conflict with a glibc newer than `glibc_max`. Unknown
    drivers are empty.
    """

    gcc_max: str
    clang_max: str
    glibc_max: str | None = None
    driver_family: str = ""
    driver_min_linux: str = ""
    driver_min_windows: str | None = None

    @property
    def compilers(self) -> dict[str, str]:
        return {"gcc": self.gcc_max, "clang": self.clang_max}


@cache
def cuda_table() -> ComputeTable[CudaRow]:
    """Return the table, read once."""
    return load_compute_table("cuda", CudaRow)
