"""CUDA toolkits: installed on the system, or assembled from PyPI's packages."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from torchyard.compute.cuda.table import cuda_table
from torchyard.compute.features import system_libraries
from torchyard.errors import ConfigError, HostError
from torchyard.host.process import capture
from torchyard.model.toolchain import ToolkitOrigin
from torchyard.model.values import Value
from torchyard.toolchain.atomic_dir import make_whole
from torchyard.toolchain.compilers import Compiler, program_output
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.pypi import locks, read_lock, unpack
from torchyard.toolchain.variables import search

_LOCK = "cuda-"
_DRIVER = {"cuda.h": ("cu", "libcuda.so.1"), "nvml.h": ("nvml", "libnvidia-ml.so.1")}
"""Headers of the driver's libraries: the prefix of functions, and the name of the library."""
_PROGRAMS = (
    "bin/nvcc",
    "bin/nvcc.profile",
    "bin/cudafe++",
    "bin/ptxas",
    "bin/fatbinary",
    "bin/nvlink",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
)


class CudaToolkit(Value, kw_only=True):
    """A CUDA toolkit; if it comes from PyPI, by a lock, its root is relative."""

    version: str
    origin: Literal["system", "pypi"]
    digest: str
    root: str
    lock: str = ""
    libraries: dict[str, str] = {}

    @property
    def name(self) -> str:
        return "cuda"

    @property
    def release(self) -> str:
        """Its version, as in names of compute platforms: `13.0`."""
        return _release(self.version)

    @property
    def identity(self) -> str:
        """Name, version, origin and digest, independent of its location."""
        return f"cuda {self.version} {self.origin} sha256:{self.digest[:16]}"

    def prepare(
        self, folder: Path, *, python: str, compiler: Compiler, archs: Sequence[str]
    ) -> None:
        """Install it if it comes from PyPI; fail if it can't compile for the architectures."""
        install_toolkit(self, folder, python, compiler)
        check_cuda_archs(self, folder, archs)

    def variables(self, folder: str, *, compiler: Compiler, archs: Sequence[str]) -> dict[str, str]:
        """Return the variables for steps that use it, given its folder."""
        root = str(Path(folder, self.root))  # an absolute root is kept
        return search(root, library="lib64") | {
            "PATH": f"{root}/bin",
            "CUDA_HOME": root,
            "CUDA_PATH": root,
            "CUDACXX": f"{root}/bin/nvcc",
            "CUDAHOSTCXX": compiler.cxx,
            "TORCH_CUDA_ARCH_LIST": ";".join(archs),
        }


def find_cuda(release: str, origin: ToolkitOrigin, digests: Digests | None = None) -> CudaToolkit:
    """Return the toolkit for a release, without installing it."""
    roots = system_roots() if origin in ("auto", "system") else {}
    for root, version in roots.items():
        if _release(version) == release:
            return _look_at(root, version, digests or Digests())
    if origin != "system" and release in _offered():
        return _from_pypi(release, f"{_LOCK}{release}-all" if origin == "pypi-all" else "")
    found = ", ".join(f"{version} in {root}" for root, version in roots.items()) or "none"
    msg = f"there is no CUDA {release}; on this machine: {found}"
    if origin == "system":
        raise HostError(msg, hint=f'install CUDA {release}, or set `cuda = "auto"` in [toolchain]')
    msg = f"{msg}; from PyPI: {', '.join(_offered())}"
    raise HostError(msg, hint=f"install CUDA {release} in /usr/local/cuda-{release}")


def _offered() -> list[str]:
    """Return the releases of which torchyard has locks."""
    return [name.removeprefix(_LOCK) for name in locks() if re.fullmatch(rf"{_LOCK}[\d.]+", name)]


def _from_pypi(release: str, name: str = "") -> CudaToolkit:
    lock = read_lock(name or f"{_LOCK}{release}")
    version = lock.versions["nvidia-cuda-nvcc"]
    root = f"nvidia/cu{release.partition('.')[0]}"
    return CudaToolkit(
        version=version, origin="pypi", digest=lock.digest, root=root, lock=lock.name
    )


def all_toolkits(digests: Digests) -> tuple[CudaToolkit, ...]:
    """Return the toolkits of this machine and of PyPI."""
    return (*system_toolkits(digests), *map(_from_pypi, _offered()))


def system_toolkits(digests: Digests | None = None) -> tuple[CudaToolkit, ...]:
    """Return the toolkits on this machine; the one on PATH comes first."""
    found = system_roots().items()
    return tuple(_look_at(root, version, digests or Digests()) for root, version in found)


def system_roots() -> dict[Path, str]:
    """Return the roots and versions of this machine's working toolkits."""
    found: dict[Path, str] = {}
    for nvcc in _compilers():
        with suppress(HostError):
            root = toolkit_root(nvcc)
            found.setdefault(root, toolkit_version(root))
    return found


def _compilers() -> Iterator[Path]:
    if nvcc := shutil.which("nvcc"):
        yield Path(nvcc)
    for pattern in cuda_table().machine.roots:
        roots = sorted(Path("/").glob(pattern), reverse=True)
        yield from (root / "bin/nvcc" for root in roots if (root / "bin/nvcc").is_file())


def toolkit_root(nvcc: Path) -> Path:
    """Return the root of a toolkit; its nvcc may be a link, or a script that calls another."""
    root = nvcc.resolve().parent.parent
    if (root / "nvvm/bin/cicc").is_file():
        return root
    output = capture(
        [str(nvcc), "--dryrun", "-c", "-x", "cu", "/dev/null"], cwd=Path("/"), talk=True
    )
    found = re.search(r"^#\$ TOP=(.+)$", output, re.MULTILINE)
    return Path(found[1]).resolve() if found else root


def toolkit_version(root: Path) -> str:
    """Return the version that a toolkit's nvcc prints, or fail."""
    output = program_output(str(root / "bin/nvcc"), "--version")
    version = re.search(r"release [\d.]+, V([\d.]+)", output)
    if version is None:
        msg = f"`{root}/bin/nvcc --version` prints no version: {output}"
        raise HostError(msg)
    return version[1]


def _release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _look_at(root: Path, version: str, digests: Digests) -> CudaToolkit:
    files = {name: root / name for name in _PROGRAMS}
    digest = digests.of({name: path for name, path in files.items() if path.is_file()})
    libraries = system_libraries(cuda_table().machine.features, str(root))
    return CudaToolkit(
        version=version, origin="system", digest=digest, root=str(root), libraries=libraries
    )


def install_toolkit(toolkit: CudaToolkit, folder: Path, python: str, compiler: Compiler) -> None:
    """Install a toolkit from PyPI, in the layout that CMake expects."""
    if toolkit.origin == "system":
        return
    lock = read_lock(toolkit.lock)

    def fill(part: Path) -> None:
        unpack(lock, part, python)
        root = part / toolkit.root
        (root / "lib64").symlink_to("lib")
        for library in sorted(root.glob("lib/*.so.*")):
            plain = root / "lib" / f"{library.name.partition('.so.')[0]}.so"
            if not plain.exists():
                plain.symlink_to(library.name)
        _make_stubs(root, compiler)

    make_whole(folder, lock.stamp, fill)


def _make_stubs(root: Path, compiler: Compiler) -> None:
    """Make libraries to link with instead of the driver's, as PyPI has none."""
    folder = root / "lib/stubs"
    folder.mkdir()
    for header, (prefix, library) in _DRIVER.items():
        if (root / "include" / header).is_file():
            text = compiler.query("-E", "-P", f"-I{root}/include", str(root / "include" / header))
            names = sorted(set(re.findall(rf"\b({prefix}[A-Z]\w*) *\(", text)))
            source = folder / "stub.c"
            source.write_text("".join(f"void {name}(void) {{}}\n" for name in names), "utf-8")
            stub = folder / f"{library.partition('.so')[0]}.so"
            soname = f"-Wl,-soname,{library}"
            compiler.query("-shared", "-fPIC", soname, "-o", str(stub), str(source))
            source.unlink()


def check_cuda_archs(toolkit: CudaToolkit, folder: Path, archs: Sequence[str]) -> None:
    """Fail if the toolkit can't compile for one of the architectures, such as `9.0+PTX`."""
    nvcc = Path(folder, toolkit.root, "bin/nvcc")
    supported = re.findall(r"compute_(\d+)", program_output(str(nvcc), "--list-gpu-arch"))
    bad = [arch for arch in archs if _number(arch) not in supported]
    if bad:
        names = ", ".join(f"{number[:-1]}.{number[-1]}" for number in sorted(supported, key=int))
        msg = f"CUDA {toolkit.release} can't compile for {', '.join(bad)}; it supports {names}"
        raise ConfigError(msg, hint="leave them out of `archs`, or use another CUDA")


def _number(arch: str) -> str:
    """Return an architecture's number in nvcc's options: `100` for `10.0a` and `10.0+PTX`."""
    found = re.fullmatch(r"(\d+)\.(\d)[af]?(\+PTX)?", arch)
    return f"{found[1]}{found[2]}" if found else ""
