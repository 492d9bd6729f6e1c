"""Intel's GPUs. torchyard has no toolchain for them: their cores need steps in the file."""

from collections.abc import Mapping
from functools import cache

from torchyard.compute.platform import ComputePlatform, MachineFact, Support
from torchyard.compute.table import ComputeRow, ComputeTable, load_compute_table


class Xpu(ComputePlatform):
    """Intel's GPUs."""

    name = "xpu"
    title = "XPU"
    label = "xpu"
    device_nodes = "dri/renderD*"
    visible_devices = "ZE_AFFINITY_MASK"
    torch_device = "xpu"
    facts: tuple[MachineFact, ...] = (
        MachineFact(
            option="xpu",
            title="Intel's GPU",
            help="For a machine with Intel's GPU.",
            is_flag=True,
        ),
    )

    def table(self) -> ComputeTable[ComputeRow]:
        return _table()

    def support(self, compute: str, facts: Mapping[str, str], platform: str) -> Support | str:
        return Support(2) if facts.get("xpu") else "is for Intel's GPUs (xpu)"


@cache
def _table() -> ComputeTable[ComputeRow]:
    return load_compute_table("xpu", ComputeRow)


platform: ComputePlatform = Xpu()
