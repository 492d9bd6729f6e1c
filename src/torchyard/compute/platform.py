"""The interface of a compute platform, grouped by the parts of torchyard that use it.

`registry` finds the platforms. Every member has a default for platforms with little support, so
a new one starts with a name, a label and a table.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchyard.compute.table import ComputeRow, ComputeTable, LibraryRules
from torchyard.errors import HostError
from torchyard.model.matrix import any_match
from torchyard.model.tables import Compute
from torchyard.model.toolchain import ToolkitOrigin
from torchyard.model.values import Value

if TYPE_CHECKING:  # slow to import, and not needed by plans
    from torchyard.doctor.check import MachineCheck
    from torchyard.toolchain.digests import Digests
    from torchyard.toolchain.toolkit import Toolkit


class MachineFact(Value, kw_only=True):
    """A property of a machine's GPUs that determines which packages run on it.

    `option` is the option of `torchyard which` that sets it, and the key in its report.
    """

    option: str
    title: str
    help: str
    is_flag: bool = False


class Support(NamedTuple):
    """How well packages for a compute run on a machine; higher is better.

    `level` is 2 for a present GPU, 1 if only its driver family fits, 0 for CPUs.
    """

    level: int
    version: tuple[int, ...] = ()


class CompilerLimits(NamedTuple):
    """The header, in a wheel, with a toolkit's limits for host compilers.

    `newest` has a pattern for each key of a row, whose first group is the value.
    """

    distribution: str
    header: str
    newest: Mapping[str, re.Pattern[bytes]]


class ComputePlatform(Protocol):
    """A vendor's GPUs, or CPUs only: names, tools, libraries, packages and machines."""

    # ------------------------------------------------------------------ names and versions

    name: str
    """The name of its module, its table, and the setting with a toolkit's version."""
    title: str
    """Its name in sentences and tables: `CUDA`."""
    label: str
    """A regular expression for its computes in local versions, as in `2.14.0+cu130`."""
    is_gpu: bool = True
    row_type: type[ComputeRow] = ComputeRow
    """The type of its table's rows."""

    def table(self) -> ComputeTable[ComputeRow]:
        """Return its table, read once."""
        ...

    def problems(self, rows: Mapping[str, ComputeRow]) -> Iterator[str]:
        """Yield the problems of its table's rows."""
        yield from ()

    def computes(self) -> dict[str, Compute]:
        """Return this platform's values of the dimension `compute`, for plans."""
        table = self.table()
        return {name: self.compute_of(row, table.source) for name, row in table.rows.items()}

    def compute_of(self, row: ComputeRow, source: str) -> Compute:
        """Return a row from `source` as plans need it."""
        return Compute(
            platform=self.name,
            source=source,
            version=row.version,
            pinned=row.pinned,
            platforms=row.platforms or tuple(row.archs),
            archs=row.archs,
            has_origin=self.has_origin,
            is_gpu=self.is_gpu,
            compilers=row.compilers,
        )

    def reference(self, compute: str) -> dict[str, str]:
        """Return the columns of a row in the reference, besides its architectures."""
        return {}

    def recognises(self, compute: str) -> bool:
        """Return whether a compute belongs to this platform, even if it is not in the table."""
        return re.fullmatch(self.label, compute) is not None

    def version(self, compute: str) -> str:
        """Return the version in the name of a compute: `13.0` for cu130."""
        return ""

    def compiler_limits(self, compute: str) -> CompilerLimits | None:
        """Return where a version states its limits for host compilers, or None."""
        return None

    def compute_of_version(self, version: str) -> str:
        """Return the compute of a toolkit's version, which may be longer, or ""."""
        return ""

    # -------------------------------------------------------------------------- toolchain

    needs_toolkit: bool = True
    """Whether builds need more than a compiler."""
    has_origin: bool = False
    """Whether `[toolchain]` has a key of the platform's name for the toolkit's origin."""
    wheel_folders: str = ""
    """A glob for the folders of its toolkit's wheels in `site-packages`."""
    cmake_switch: str = ""
    """The CMake cache entry and variable of PyTorch that turns the platform on."""
    cmake_archs: str = ""
    """The CMake cache entry and variable with the list of architectures."""

    def find_toolkit(
        self, compute: str, origin: ToolkitOrigin, digests: "Digests"
    ) -> "Toolkit | None":
        """Return the toolkit for a compute, without installing it."""
        if not self.needs_toolkit:
            return None
        msg = f"torchyard can't set up a toolchain for {compute}"
        raise HostError(msg, hint="write your own steps, for a machine with a toolchain")

    def toolkits(self, digests: "Digests") -> "tuple[Toolkit, ...]":
        """Return all toolkits on this machine or on PyPI."""
        return ()

    # ---------------------------------------------------------------------- device code

    arch: str = ""
    """A regular expression for the architectures of `archs`; empty if it has none."""
    arch_hint: str = ""
    """How to write an architecture: `gfx90a for ROCm`."""
    device_kinds: tuple[str, ...] = ()
    """The kinds of its device code in packages, as `package.device` names them."""
    bundled_kinds: Mapping[str, str] = {}
    """The kinds of device code in Clang's bundles, by a word of the targets that have it."""
    device_loaders: tuple[str, ...] = ()
    """Prefixes of the names of libraries that load device code."""
    device_files: tuple[str, ...] = ()
    """Words in the names of files that probably have device code."""

    def device_codes(self, archs: Iterable[str]) -> Iterator[str]:
        """Yield the codes of a list of architectures: `9.0+PTX` is sm_90 and compute_90."""
        yield from archs

    device_code: str = ""
    """A regular expression for the codes in torch's list of architectures; empty if none."""

    def archs_of(self, codes: Iterable[str]) -> tuple[str, ...]:
        """Return the architectures of a list of codes, in the form of a compute's `archs`."""
        return tuple(codes)

    def without_features(self, code: str) -> str:
        """Return the code of the plain architecture: `sm_90` for sm_90a."""
        return code

    # -------------------------------------------------------------- libraries in packages

    def libraries(self) -> Mapping[str, LibraryRules]:
        """Return where packages find the platform's libraries."""
        return self.table().libraries

    def library_wheels(self) -> frozenset[str]:
        """Return the names of wheels with its libraries."""
        rules = self.libraries().values()
        return frozenset(wheel.distribution for rule in rules for wheel in rule.wheels)

    @property
    def metapackage(self) -> str:
        """The vendor's metapackage of all wheels with libraries; empty if there is none."""
        return next((rules.toolkit for rules in self.libraries().values() if rules.toolkit), "")

    def owns(self, library: str) -> bool:
        """Return whether a library comes with the platform's driver, or in one of its wheels."""
        return any(
            any_match(library, rules.drivers)
            or any(any_match(library, wheel.libraries) for wheel in rules.wheels)
            for rules in self.libraries().values()
        )

    def is_wrong_runtime(self, library: str, compute: str) -> bool:
        """Return whether a library is the platform's runtime in another version."""
        return False

    def library_toolkit(self, library: str) -> str:
        """Return the major version of a library's toolkit: 13 for libcudart.so.13."""
        return ""

    def wheel_toolkit(self, distribution: str, pin: str) -> str:
        """Return the major version of a required wheel's toolkit; `pin` may be ""."""
        return ""

    def compute_required(self, pinned: Mapping[str, str]) -> str:
        """Return the compute of the required wheels; `pinned` has versions such as `13.0`."""
        return ""

    # -------------------------------------------------------------------- conda packages

    conda_virtual_package: str = ""
    """Conda's name of the driver; packages for the platform depend on it."""

    def driver_family(self, compute: str) -> str:
        """Return the oldest version of the driver's interface that runs packages for a compute."""
        return ""

    def conda_build(self, compute: str) -> str:
        """Return the prefix of the build strings of packages for a compute."""
        return compute.replace(".", "")

    def compute_of_conda_build(self, build: str) -> str:
        """Return the compute that a build string names, or an empty string."""
        return ""

    def conda_name(self, distribution: str) -> str:
        """Return the name of a wheel without the parts that conda omits."""
        return distribution

    # ------------------------------------------------------------------------- machines

    facts: tuple[MachineFact, ...] = ()
    """The relevant facts about a machine, the most reliable first."""
    device_nodes: str = ""
    """A glob for the device files of GPUs below /dev."""
    visible_devices: str = ""
    """The variable that selects the GPUs of a program."""
    torch_device: str = ""
    """The name of its devices in torch."""
    torch_version: str = ""
    """The attribute of `torch.version` that has the toolkit's version."""

    def detect(self) -> dict[str, str]:
        """Return the detected facts of this machine."""
        return {}

    def machine_checks(self) -> "tuple[MachineCheck, ...]":
        """Return the checks of a machine that builds for it."""
        return ()

    def support(self, compute: str, facts: Mapping[str, str], platform: str) -> Support | str:
        """Return how well packages for a compute run on a machine, or why they don't."""
        return Support(0)
