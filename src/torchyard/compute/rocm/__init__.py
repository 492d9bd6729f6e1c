"""ROCm: AMD's GPUs, compiled for by hipcc; see `toolkit`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from torchyard.compute.platform import ComputePlatform, MachineFact, Support
from torchyard.compute.rocm.table import rocm_table
from torchyard.compute.table import ComputeRow, ComputeTable, bad_toolkit
from torchyard.errors import HostError
from torchyard.host.files import join, read_text
from torchyard.model.tables import Compute
from torchyard.model.toolchain import ToolkitOrigin
from torchyard.model.version import version_numbers

if TYPE_CHECKING:  # slow to import, and not needed by plans
    from torchyard.doctor.check import MachineCheck
    from torchyard.toolchain.digests import Digests
    from torchyard.toolchain.toolkit import Toolkit


class Rocm(ComputePlatform):
    """AMD's GPUs."""

    name = "rocm"
    title = "ROCm"
    label = r"rocm\d+(?:\.\d+)*"
    cmake_switch = "USE_ROCM"
    cmake_archs = "PYTORCH_ROCM_ARCH"
    arch = r"gfx[0-9a-f]+(?::(?:xnack|sramecc)[+-])*"
    arch_hint = "gfx90a for ROCm"
    device_kinds: tuple[str, ...] = ("hsaco",)
    bundled_kinds: Mapping[str, str] = {"amdgcn": "hsaco"}
    device_code = "gfx[0-9a-f]+"
    device_loaders: tuple[str, ...] = ("libamdhip64.", "libhiprtc.", "libhsa-")
    device_files: tuple[str, ...] = ("hip", "roc")
    device_nodes = "kfd"
    visible_devices = "HIP_VISIBLE_DEVICES"
    torch_device = "cuda"
    torch_version = "hip"
    facts: tuple[MachineFact, ...] = (
        MachineFact(option="rocm", title="ROCm", help="For a machine with this ROCm."),
    )

    def table(self) -> ComputeTable[ComputeRow]:
        return rocm_table()

    def problems(self, rows: Mapping[str, ComputeRow]) -> Iterator[str]:
        for compute, row in rows.items():
            yield from bad_toolkit(compute, f"rocm{row.version}", row, self.arch)

    def compute_of(self, row: ComputeRow, source: str) -> Compute:
        rules = rocm_table().build_of(f"rocm{row.version}")
        plain = super().compute_of(row, source)
        return msgspec.structs.replace(plain, translate=rules.translate, env=rules.env)

    def version(self, compute: str) -> str:
        return compute.removeprefix("rocm")

    def compute_of_version(self, version: str) -> str:
        return f"rocm{'.'.join(version.split('.')[:2])}" if version else ""

    def find_toolkit(self, compute: str, origin: ToolkitOrigin, digests: "Digests") -> "Toolkit":
        from torchyard.compute.rocm.toolkit import find_rocm  # noqa: PLC0415 - slow

        return find_rocm(self.version(compute), digests)

    def toolkits(self, digests: "Digests") -> "tuple[Toolkit, ...]":
        from torchyard.compute.rocm.toolkit import system_rocms  # noqa: PLC0415 - slow

        return system_rocms(digests)

    def without_features(self, code: str) -> str:
        """`gfx90a` of gfx90a:xnack+."""
        return re.sub(":.*", "", code)

    def detect(self) -> dict[str, str]:
        return {"rocm": rocm_version()}

    def machine_checks(self) -> "tuple[MachineCheck, ...]":
        from torchyard.compute.rocm.machine_checks import ROCM_CHECKS  # noqa: PLC0415 - slow

        return ROCM_CHECKS

    def support(self, compute: str, facts: Mapping[str, str], platform: str) -> Support | str:
        wanted, here = version_numbers(self.version(compute)), facts.get("rocm", "")
        if here and version_numbers(here) >= wanted:
            return Support(2, wanted)
        why = f"ROCm {here} is too old for it" if here else "this machine has no ROCm"
        return f"is for {compute}: {why}"


def rocm_version(root: str = "/") -> str:
    """Return the version of ROCm in its default location, such as `7.2.0`, or an empty string."""
    with suppress(HostError):
        return read_text(join(root, "opt/rocm/.info/version")).strip().partition("-")[0]
    return ""


platform: ComputePlatform = Rocm()
