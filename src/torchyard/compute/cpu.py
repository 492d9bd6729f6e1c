"""CPUs: packages without GPU code, built by a compiler alone."""

from functools import cache

from torchyard.compute.platform import ComputePlatform
from torchyard.compute.table import ComputeRow, ComputeTable, load_compute_table


class Cpu(ComputePlatform):
    """No GPU."""

    name = "cpu"
    title = "CPU"
    label = "cpu"
    is_gpu = False
    needs_toolkit = False

    def table(self) -> ComputeTable[ComputeRow]:
        return _table()

    def compute_of_conda_build(self, build: str) -> str:
        return "cpu" if build.startswith("cpu_") else ""


@cache
def _table() -> ComputeTable[ComputeRow]:
    return load_compute_table("cpu", ComputeRow)


platform: ComputePlatform = Cpu()
