"""ROCm of the system: hipcc, and the clang behind it."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from torchyard.compute.features import system_libraries
from torchyard.compute.rocm.table import rocm_table
from torchyard.errors import ConfigError, HostError
from torchyard.host.process import capture
from torchyard.model.values import Value
from torchyard.toolchain.compilers import Compiler, programs_of
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.variables import SYSTEM_PREFIX, search

_DEVICE = ("amdgcn/bitcode", "lib/*/amdgcn/bitcode", "lib/llvm/lib/clang/*/lib/amdgcn/bitcode")
_ANY_ARCH = "--offload-arch=gfx900"  # else hipcc probes for a GPU, which is slow


class RocmToolkit(Value, kw_only=True):
    """A ROCm installation on this machine."""

    version: str
    digest: str
    root: str
    clang: str
    libraries: dict[str, str] = {}

    @property
    def name(self) -> str:
        return "rocm"

    @property
    def origin(self) -> Literal["system"]:
        return "system"

    @property
    def release(self) -> str:
        """Its version, as in names of compute platforms: `7.2`."""
        return ".".join(self.version.split(".")[:2])

    @property
    def identity(self) -> str:
        """Name, version, origin and digest, independent of its location."""
        return f"rocm {self.version} system sha256:{self.digest[:16]}"

    @property
    def device_libraries(self) -> str:
        """The folder of libraries for device code; clang finds those of ROCM_PATH only in one."""
        beside = Path(self.clang).resolve().parent.parent.glob("lib/clang/*/amdgcn/bitcode")
        own = (folder for pattern in _DEVICE for folder in sorted(Path(self.root).glob(pattern)))
        return next((str(folder) for folder in (*sorted(beside), *own)), "")

    def prepare(
        self, folder: Path, *, python: str, compiler: Compiler, archs: Sequence[str]
    ) -> None:
        """Fail if it can't compile for the architectures; there is nothing to install."""
        check_rocm_archs(self, archs)

    def variables(self, folder: str, *, compiler: Compiler, archs: Sequence[str]) -> dict[str, str]:
        """Return the variables for steps that use it."""
        env = self._table_variables(compiler) | {
            "HIP_PLATFORM": "amd",
            "HIP_PATH": self.root,
            "ROCM_PATH": self.root,
            "HIP_CLANG_PATH": str(Path(self.clang).parent),
            "PYTORCH_ROCM_ARCH": ";".join(archs),
        }
        if device := self.device_libraries:
            env["HIP_DEVICE_LIB_PATH"] = device
        return env | search(self.root) | {"PATH": f"{self.root}/bin"}

    def _table_variables(self, compiler: Compiler) -> dict[str, str]:
        """Return the variables of the table, with the folders of this machine."""
        given = rocm_table().build_of(f"rocm{self.release}").env
        if not given:
            return {}
        folders = {
            "root": self.root,
            "llvm": str(Path(self.clang).parent.parent),
            "gcc": str(Path(compiler.query("-print-libgcc-file-name").strip()).parent),
        }
        if self.root == SYSTEM_PREFIX:  # put before C++'s own headers, C's are not found from there
            given = {name: _without_root(value) for name, value in given.items()}
        return {name: value.format(**folders) for name, value in given.items() if value}


def _without_root(value: str) -> str:
    """Return the words of a variable in the table that do not name the toolkit's folder."""
    return " ".join(word for word in value.split() if "{root}" not in word)


def find_rocm(release: str, digests: Digests | None = None) -> RocmToolkit:
    """Return the ROCm of this release, or fail."""
    found = _found()
    for rocm in found:
        if rocm.release == release:
            return _identified(rocm, digests or Digests())
    others = ", ".join(f"{rocm.version} in {rocm.root}" for rocm in found) or "none"
    msg = f"there is no ROCm {release}; on this machine: {others}"
    raise HostError(msg, hint=f"install ROCm {release} in /opt/rocm-{release}")


def system_rocms(digests: Digests | None = None) -> tuple[RocmToolkit, ...]:
    """Return every ROCm on this machine; the one on PATH comes first."""
    return tuple(_identified(rocm, digests or Digests()) for rocm in _found())


def _found() -> list[RocmToolkit]:
    """Return every working ROCm, without digests."""
    found: list[RocmToolkit] = []
    for root in dict.fromkeys(_roots()):
        with suppress(HostError):
            found.append(query_rocm(root))
    return found


def _roots() -> Iterator[Path]:
    if hipcc := shutil.which("hipcc"):
        yield Path(hipcc).resolve().parent.parent
    for pattern in rocm_table().machine.roots:
        for root in sorted(Path("/").glob(pattern), reverse=True):
            if (root / "bin/hipcc").exists():
                yield root.resolve()


def query_rocm(root: Path) -> RocmToolkit:
    """Return a ROCm from its hipcc's output, without a digest."""
    hipcc = root / "bin/hipcc"
    env = {**os.environ, "HIP_PLATFORM": "amd"}
    output = capture([str(hipcc), _ANY_ARCH, "--version"], cwd=Path("/"), env=env)
    version = re.search(r"HIP version: (\d+\.\d+\.\d+)", output)
    clang = re.search(r"clang version (\d+)", output)
    folder = re.search(r"InstalledDir: (\S+)", output)
    if not (version and clang and folder):
        msg = f"`{hipcc} --version` prints no version of HIP and clang: {output}"
        raise HostError(msg)
    names = (Path(folder[1], name) for name in (f"clang-{clang[1]}", "clang"))
    program = next((path for path in names if path.exists()), hipcc)
    return RocmToolkit(version=version[1], digest="", root=str(root), clang=str(program))


def _identified(rocm: RocmToolkit, digests: Digests) -> RocmToolkit:
    """Return the ROCm with the digest of the files that determine hipcc's output."""
    root = Path(rocm.root)
    parts = programs_of(rocm.clang, "clang")
    parts |= {path.name: path for path in root.glob("bin/hipcc*") if path.is_file()}
    if rocm.device_libraries:
        parts |= {path.name: path for path in Path(rocm.device_libraries).glob("*.bc")}
    libraries = system_libraries(rocm_table().machine.features, rocm.root)
    return msgspec.structs.replace(rocm, digest=digests.of(parts), libraries=libraries)


def check_rocm_archs(rocm: RocmToolkit, archs: Sequence[str]) -> None:
    """Fail if its clang can't compile for one of the architectures, such as `gfx90a:xnack-`."""
    output = capture(
        [rocm.clang, "--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus"],
        cwd=Path("/"),
        talk=True,
    )
    supported = re.findall(r"^\s+(gfx\w+)$", output, re.MULTILINE)
    bad = [arch for arch in archs if arch.partition(":")[0] not in supported]
    if bad:
        names = ", ".join(supported)
        msg = f"ROCm {rocm.release} can't compile for {', '.join(bad)}; it supports {names}"
        raise ConfigError(msg, hint="leave them out of `archs`, or use another ROCm")
