"""CUDA: NVIDIA's GPUs, compiled for by nvcc; see `toolkit`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchyard.compute.cuda.table import CudaRow, cuda_table
from torchyard.compute.platform import CompilerLimits, ComputePlatform, MachineFact, Support
from torchyard.compute.table import ComputeRow, ComputeTable, bad_toolkit
from torchyard.model.toolchain import ToolkitOrigin
from torchyard.model.version import version_numbers

if TYPE_CHECKING:  # slow to import, and not needed by plans
    from torchyard.doctor.check import MachineCheck
    from torchyard.toolchain.digests import Digests
    from torchyard.toolchain.toolkit import Toolkit


_LABEL = re.compile(r"cu(\d+)(\d)")
_RUNTIME = re.compile(r"libcudart(?:-[0-9a-f]+)?\.so\.(\d+)")
_TOOLKIT_LIBRARY = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cupti|nvrtc|nvJitLink)\.so\.(\d+)(?:\.\d+)*"
)
"""Libraries whose sonames have their toolkit's major version; others have their own."""
_TOOLKIT_WHEEL = re.compile(r"nvidia-[a-z-]+-cu(\d+)")
_NEWEST_COMPILERS = {
    "gcc_max": re.compile(rb"__GNUC__ > (\d+)"),
    "clang_max": re.compile(rb"__clang_major__ > (\d+)"),
}
_CRT_SINCE = 13
"""The first CUDA version with a separate distribution for nvcc's headers."""
_PTX = "+PTX"
_TOOLKIT = (
    "cuda-toolkit",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cublas-cu12",
    "nvidia-cuda-runtime-cu11",
)
"""Wheels whose versions start with that of their toolkit, the most reliable first."""


class Cuda(ComputePlatform):
    """NVIDIA's GPUs."""

    name = "cuda"
    title = "CUDA"
    label = _LABEL.pattern
    row_type: type[ComputeRow] = CudaRow
    has_origin = True
    wheel_folders = "nvidia/*"
    cmake_switch = "USE_CUDA"
    cmake_archs = "TORCH_CUDA_ARCH_LIST"
    arch = r"\d+\.\d[af]?(?:\+PTX)?"
    arch_hint = "9.0 for CUDA, 9.0+PTX with code for later GPUs, too"
    device_kinds: tuple[str, ...] = ("cubin", "ptx")
    device_code = r"(?:sm|compute)_\d+[af]?"
    device_loaders: tuple[str, ...] = ("libcuda.", "libcudart.", "libnvrtc.")
    device_files: tuple[str, ...] = ("cuda", r"cu\d", "cudnn", "cublas", "nv", "nccl")
    conda_virtual_package = "__cuda"
    device_nodes = "nvidia[0-9]*"
    visible_devices = "CUDA_VISIBLE_DEVICES"
    torch_device = "cuda"
    torch_version = "cuda"
    facts: tuple[MachineFact, ...] = (
        MachineFact(
            option="driver",
            title="NVIDIA's driver",
            help="For NVIDIA's driver of this version.",
        ),
        MachineFact(option="cuda", title="CUDA", help="For a driver that supports this CUDA."),
    )

    def table(self) -> ComputeTable[CudaRow]:
        return cuda_table()

    def problems(self, rows: Mapping[str, ComputeRow]) -> Iterator[str]:
        for compute, row in rows.items():
            yield from bad_toolkit(compute, f"cu{row.version.replace('.', '')}", row, self.arch)
            for kind, newest in row.compilers.items():
                if not newest.isdecimal():
                    yield f"{compute} accepts {kind} up to `{newest}`, which is not a number"
            for platform, archs in row.archs.items():
                order = [version_numbers(arch) for arch in archs]
                if order != sorted(order):
                    yield f"the architectures of {compute} on {platform} are not in order"

    def reference(self, compute: str) -> dict[str, str]:
        row = cuda_table().rows[compute]
        return {
            "gcc up to": row.gcc_max,
            "clang up to": row.clang_max,
            "glibc up to": row.glibc_max or "",
            "Linux driver from": row.driver_min_linux,
        }

    def version(self, compute: str) -> str:
        found = _LABEL.fullmatch(compute)
        return f"{found[1]}.{found[2]}" if found else ""

    def compiler_limits(self, compute: str) -> CompilerLimits:
        major = version_numbers(self.version(compute))[0]
        distribution = f"nvidia-cuda-nvcc-cu{major}" if major < _CRT_SINCE else "nvidia-cuda-crt"
        return CompilerLimits(distribution, "crt/host_config.h", _NEWEST_COMPILERS)

    def compute_of_version(self, version: str) -> str:
        return f"cu{''.join(version.split('.')[:2])}" if version else ""

    def find_toolkit(self, compute: str, origin: ToolkitOrigin, digests: "Digests") -> "Toolkit":
        from torchyard.compute.cuda.toolkit import find_cuda  # noqa: PLC0415 - slow

        return find_cuda(self.version(compute), origin, digests)

    def toolkits(self, digests: "Digests") -> "tuple[Toolkit, ...]":
        from torchyard.compute.cuda.toolkit import all_toolkits  # noqa: PLC0415 - slow

        return all_toolkits(digests)

    def device_codes(self, archs: Iterable[str]) -> Iterator[str]:
        for arch in archs:
            number = arch.removesuffix(_PTX).replace(".", "")
            if number:
                yield f"sm_{number}"
                if arch.endswith(_PTX):
                    yield f"compute_{number}"

    def archs_of(self, codes: Iterable[str]) -> tuple[str, ...]:
        found: dict[str, str] = {}
        for code in codes:
            kind, _, number = code.partition("_")
            arch = re.sub(r"(\d)([af]?)$", r".\1\2", number)
            found[arch] = _PTX if kind == "compute" else found.get(arch, "")
        return tuple(sorted((f"{a}{ptx}" for a, ptx in found.items()), key=version_numbers))

    def without_features(self, code: str) -> str:
        """`sm_90` of sm_90a."""
        return re.sub(r"(?<=\d)[af]$", "", code)

    def is_wrong_runtime(self, library: str, compute: str) -> bool:
        runtime = _RUNTIME.match(library)
        return runtime is not None and runtime[1] != self.version(compute).partition(".")[0]

    def library_toolkit(self, library: str) -> str:
        found = _TOOLKIT_LIBRARY.fullmatch(library)
        return found[1] if found else ""

    def wheel_toolkit(self, distribution: str, pin: str) -> str:
        found = _TOOLKIT_WHEEL.fullmatch(distribution)
        if found:
            return found[1]
        return pin.partition(".")[0] if distribution == _TOOLKIT[0] else ""

    def compute_required(self, pinned: Mapping[str, str]) -> str:
        version = next((pinned[name] for name in _TOOLKIT if name in pinned), "")
        return self.compute_of_version(version)

    def driver_family(self, compute: str) -> str:
        """Return `13.0` for 13.2: CUDA's minor versions are compatible."""
        return f"{version_numbers(self.version(compute))[0]}.0"

    def conda_build(self, compute: str) -> str:
        return f"cuda{self.version(compute).replace('.', '')}"

    def compute_of_conda_build(self, build: str) -> str:
        found = re.match(r"cuda(\d{3})", build)
        return f"cu{found[1]}" if found else ""

    def conda_name(self, distribution: str) -> str:
        """Return the name without the CUDA version at the end of NVIDIA's wheel names."""
        return re.sub(r"-cu\d+$", "", distribution)

    def detect(self) -> dict[str, str]:
        from torchyard.compute.cuda.driver import nvidia_driver  # noqa: PLC0415 - slow

        return {"driver": nvidia_driver()}

    def machine_checks(self) -> "tuple[MachineCheck, ...]":
        from torchyard.compute.cuda.machine_checks import CUDA_CHECKS  # noqa: PLC0415 - slow

        return CUDA_CHECKS

    def support(self, compute: str, facts: Mapping[str, str], platform: str) -> Support | str:
        wanted, row = version_numbers(self.version(compute)), cuda_table().rows.get(compute)
        driver, cuda = facts.get("driver", ""), facts.get("cuda", "")
        if cuda:
            here, least, family = cuda, self.version(compute), self.driver_family(compute)
            what = f"the driver's CUDA {here}"
        elif driver and row and row.driver_family:
            linux = not platform.startswith("windows-")
            own = row.driver_min_linux if linux else row.driver_min_windows
            here, family = driver, row.driver_family
            least, what = own or family, f"the driver {here}"
        else:
            why = "its required driver is unknown" if driver else "this machine has no driver"
            return f"is for {compute}: {why}"
        if _reaches(here, least):
            return Support(2, wanted)
        if _reaches(here, family):
            return Support(1, wanted)
        return f"{what} is too old for {compute}, which needs {family}"


def _reaches(here: str, least: str) -> bool:
    """Return whether a version is new enough as far as given: 580.65 may be 580.65.06."""
    given = version_numbers(here)
    return given >= version_numbers(least)[: len(given)]


platform: ComputePlatform = Cuda()
