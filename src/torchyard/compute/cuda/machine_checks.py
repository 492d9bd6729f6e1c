"""Checks of a machine that builds for CUDA: the toolkit and its pairs, the driver, libraries."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from torchyard.compute.cuda import Cuda
from torchyard.compute.cuda.table import CudaRow, cuda_table
from torchyard.compute.cuda.toolkit import (
    check_cuda_archs,
    find_cuda,
    system_roots,
    toolkit_root,
    toolkit_version,
)
from torchyard.compute.demand import compute_demand, demanded_kits
from torchyard.compute.table import FeatureFiles
from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, make_check
from torchyard.errors import ConfigError, HostError
from torchyard.host.machine import glibc_version, platform_name
from torchyard.model.severity import Severity
from torchyard.model.values import Value
from torchyard.model.version import version_numbers
from torchyard.toolchain.compilers import Compiler, check_host_compiler, query_compiler

_PLATFORM = Cuda()
_HOMES = ("CUDA_HOME", "CUDA_PATH")
_DEFAULT = "/usr/local/cuda"
_KERNEL = "#include <cmath>\n__global__ void kernel(float *x) { *x = 1; }\n"
_LIBRARY = "libcuda.so.1"
_ASK_DRIVER = """
import ctypes, json, sys
try:
    cuda = ctypes.CDLL(sys.argv[1])
except OSError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit()
version, count = ctypes.c_int(), ctypes.c_int()
status = cuda.cuInit(0)
cuda.cuDriverGetVersion(ctypes.byref(version))
if not status:
    cuda.cuDeviceGetCount(ctypes.byref(count))
major, minor = divmod(version.value, 1000)
print(json.dumps({
    "status": status,
    "version": "%d.%d" % (major, minor // 10),
    "devices": count.value,
}))
"""
_SILENT = "CMake turns {switch} off, and says so only in its summary"


class _Kit(NamedTuple):
    """A toolkit that is meant; one that would come from PyPI has no root yet."""

    compute: str
    release: str
    root: Path | None

    @property
    def row(self) -> CudaRow | None:
        return cuda_table().rows.get(self.compute)


class _Driver(Value, kw_only=True):
    """What the driver's library says."""

    missing: str = ""
    status: int = 0
    version: str = ""
    devices: int = 0


def _root(bench: Bench) -> Path | None:
    """Return the toolkit that a build by hand would take."""
    given = [Path(bench.env[name], "bin/nvcc") for name in _HOMES if bench.env.get(name)]
    named = [Path(bench.env["CUDACXX"])] if bench.env.get("CUDACXX") else []
    found = bench.which("nvcc")
    candidates = [*named, *given, *([found] if found else []), Path(_DEFAULT, "bin/nvcc")]
    for nvcc in candidates:
        with suppress(HostError):
            if nvcc.is_file():
                return toolkit_root(nvcc)
    return None


def _kits(bench: Bench) -> list[_Kit]:
    """Return the toolkits that are meant and there."""
    kits = demanded_kits(bench, _PLATFORM, by_hand=_by_hand, of_job=_of_job)
    return bench.once("cuda-kits", lambda: list(kits))


def _by_hand(bench: Bench) -> _Kit | None:
    root = _root(bench)
    if root is None:
        return None
    version = toolkit_version(root)
    release = ".".join(version.split(".")[:2])
    return _Kit(_PLATFORM.compute_of_version(version), release, root)


def _of_job(bench: Bench, compute: str) -> _Kit:
    """Return the toolkit of a job, or fail."""
    assert bench.demand.toolchain is not None  # noqa: S101 - else it is by hand
    origin = bench.demand.toolchain.origin_of(_PLATFORM.name)
    kit = find_cuda(_PLATFORM.version(compute), origin)
    return _Kit(compute, kit.release, Path(kit.root) if kit.origin == "system" else None)


def _host_compiler(bench: Bench) -> Compiler:
    """Return the compiler that nvcc calls for host code."""
    named = bench.env.get("CUDAHOSTCXX", "") if bench.by_hand else ""
    if not named:
        return bench.compiler
    program = bench.named_compiler("CUDAHOSTCXX", ())
    kind, version = query_compiler(program)
    return Compiler(kind=kind, cc=program, cxx=program, version=version, digest="")


def cuda_toolkit(bench: Bench) -> Iterator[Seen | Trouble]:
    """The CUDA toolkit that is asked for is there, and compiles for the architectures.

    A build by hand takes CUDACXX, CUDA_HOME, CUDA_PATH, nvcc on PATH, or /usr/local/cuda.
    """
    demand = compute_demand(bench, _PLATFORM)
    if demand is None:
        return
    kits = {kit.compute: kit for kit in _kits(bench)}
    for compute in demand.computes:
        kit = kits.get(compute) if compute else next(iter(kits.values()), None)
        if kit is None and demand.required:
            yield from _missing(bench, compute, next(iter(kits.values()), None))
        elif kit is None:
            yield Seen("no CUDA: torch is built for CPUs")
        else:
            where = kit.root or "from PyPI, as the file's toolchain says"
            yield Seen(f"CUDA {kit.release} ({where})")
            yield from _archs(bench, kit)


def _missing(bench: Bench, compute: str, other: _Kit | None) -> Iterator[Trouble]:
    release = _PLATFORM.version(compute)
    why = (
        "the build is for another CUDA, or for CPUs, and no error says so"
        if bench.by_hand
        else "nvcc compiles it"
    )
    if not bench.by_hand:
        try:
            _of_job(bench, compute)
        except HostError as error:
            yield Trouble(str(error), why, error.diagnostics[0].hint or "")
        return
    for root, version in system_roots().items():
        if release and version.startswith(f"{release}."):
            what = f"the build takes CUDA {other.release if other else 'nowhere'}, not {release}"
            place = shlex.quote(str(root))
            yield Trouble(what, why, _choose(bench, place))
            return
    there = f"; the build takes {other.release} in {other.root}" if other else ""
    what = f"there is no CUDA {release}".strip() + there
    yield Trouble(what, why, _install(release or max(_releases(), key=version_numbers)))


def _choose(bench: Bench, root: str) -> str:
    stray = " CUDACXX" if bench.env.get("CUDACXX") else ""
    unset = f"unset{stray}; " if stray else ""
    return f"{unset}export CUDA_HOME={root} CUDA_PATH={root} PATH={root}/bin:$PATH"


def _releases() -> list[str]:
    return [row.version for row in cuda_table().rows.values()]


def _install(release: str) -> str:
    for manager, package in cuda_table().machine.packages.items():
        if shutil.which(manager):
            return f"{manager} install -y {package.format(dashed=release.replace('.', '-'))}"
    return ""


def _archs(bench: Bench, kit: _Kit) -> Iterator[Trouble]:
    """Yield architectures that the toolkit can't compile for."""
    given = bench.env.get(_PLATFORM.cmake_archs, "") if bench.by_hand else ""
    archs = re.split(r"[;, ]+", given) if given else bench.demand.archs.get(kit.compute, ())
    archs = [arch for arch in archs if re.fullmatch(_PLATFORM.arch, arch)]
    if kit.root is None or not archs:
        return
    try:
        check_cuda_archs(find_cuda(kit.release, "system"), Path("/"), archs)
    except ConfigError as error:
        name = _PLATFORM.cmake_archs
        cure = f"unset {name}" if given else "leave them out of `archs` in an [[override]]"
        yield Trouble(str(error), "nvcc ends with `Unsupported gpu architecture`", cure)
    except HostError:
        return


def cuda_host_compiler(bench: Bench) -> Iterator[Seen | Trouble]:
    """The host compiler and the C library are ones that nvcc takes; it compiles a kernel.

    Limits are in `data/compute/cuda.toml`; a toolkit of this machine is tried as well.
    """
    for kit in _kits(bench):
        try:
            compiler = _host_compiler(bench)
        except HostError:
            return  # `compiler` says so
        newest = bench.demand.newest.get(kit.compute) or (kit.row.compilers if kit.row else {})
        title = f"CUDA {kit.release}"
        try:
            check_host_compiler(title, compiler, newest)
        except HostError as error:
            why = "nvcc ends with `unsupported GNU version`"
            yield Trouble(str(error), why, _older(bench, compiler, newest))
            continue
        limit, glibc = kit.row and kit.row.glibc_max, glibc_version()
        if limit and glibc and version_numbers(glibc) > version_numbers(limit):
            yield Trouble(
                f"{title} does not go with glibc {glibc}: the newest that it takes is {limit}",
                "nvcc ends with `exception specification is incompatible` in mathcalls.h",
                "torchyard root make bookworm root" if not bench.by_hand else "",
            )
            continue
        said = _tried(bench, kit, compiler)
        if said:
            why = "CMake tries nvcc first, and ends if it fails"
            yield Trouble(f"nvcc of {title} compiles nothing: {said}", why, _install(kit.release))
        else:
            name = f"{compiler.kind} {compiler.version}"
            yield Seen(f"{title} with {name}" + (f" and glibc {glibc}" if glibc else ""))


def _older(bench: Bench, compiler: Compiler, newest: Mapping[str, str]) -> str:
    """Return the command that chooses a host compiler that the toolkit takes."""
    limit = newest[compiler.kind]
    for other in bench.other_compilers():
        fits = version_numbers(other.version)[:1] <= version_numbers(newest.get(other.kind, "0"))
        if fits and bench.by_hand:
            return f"export CUDAHOSTCXX={shlex.quote(other.cxx)}"
        if fits:
            return f'set `compiler = "{other.cc}"` in [toolchain]'
    return f"apt-get install -y g++-{limit} && export CUDAHOSTCXX=g++-{limit}"


def _tried(bench: Bench, kit: _Kit, compiler: Compiler) -> str:
    """Return what nvcc says if it can't compile a kernel; empty if it can, or is not here yet."""
    if kit.root is None:
        return ""
    with TemporaryDirectory(prefix="torchyard-doctor-") as folder:
        source = Path(folder, "probe.cu")
        source.write_text(_KERNEL, encoding="utf-8")
        nvcc = kit.root / "bin/nvcc"
        done = bench.run(nvcc, "-ccbin", compiler.cxx, "-c", source, "-o", f"{folder}/probe.o")
    errors = [line for line in done.lines if "error" in line or "fatal" in line]
    said = (errors or list(done.lines) or [done.signal or f"exit code {done.code}"])[0]
    return said if done.code else ""


def cuda_variables(bench: Bench) -> Iterator[Seen | Trouble]:
    """CUDA_HOME, CUDA_PATH, CUDACXX and nvcc on PATH are of one toolkit."""
    if compute_demand(bench, _PLATFORM) is None:
        return
    taken = bench.which("nvcc")
    roots: dict[str, Path] = {}
    for name in (*_HOMES, "CUDACXX"):
        given = bench.env.get(name, "")
        nvcc = Path(given) if name == "CUDACXX" else Path(given, "bin/nvcc")
        if given and not nvcc.is_file():
            what = f"{name} is {given}, where no nvcc is"
            yield Trouble(what, "the build finds no CUDA there, or parts of two", f"unset {name}")
        elif given:
            roots[name] = toolkit_root(nvcc)
    if taken:
        with suppress(HostError):
            roots["PATH"] = toolkit_root(taken)
    for name, root in roots.items():
        if "PATH" in roots and root != roots["PATH"]:
            yield Trouble(
                f"{name} means the CUDA in {root}, and nvcc on PATH is that in {roots['PATH']}",
                "CMake, setup.py and extensions look at different ones of these",
                f"unset {name}",
                Severity.WARNING,
            )


def cuda_driver(bench: Bench) -> Iterator[Seen | Trouble]:
    """NVIDIA's driver runs what the toolkit compiles. Its library is asked in another process.

    Nothing is built with it: without a driver, only tests on a GPU are not possible.
    """
    kits = _kits(bench)
    if not kits:
        return
    done = bench.run(sys.executable, "-I", "-c", _ASK_DRIVER, _LIBRARY)
    try:
        driver = msgspec.json.decode("\n".join(done.lines[-1:]), type=_Driver)
    except msgspec.MsgspecError:
        how = "does not answer" if done.late else f"crashes ({done.signal or done.code})"
        what = f"{_LIBRARY} {how} when it is asked for its version"
        yield Trouble(what, "so would each program that uses a GPU", "nvidia-smi", Severity.WARNING)
        return
    if driver.missing:
        yield Seen("no driver of NVIDIA: it can be built, and not be tried on a GPU")
        return
    if driver.status:
        why = cuda_table().machine.statuses.get(str(driver.status), "see the driver API's CUresult")
        what = f"NVIDIA's driver (CUDA {driver.version}) answers with error {driver.status}"
        yield Trouble(what, why, "", Severity.WARNING)
        return
    yield Seen(f"NVIDIA's driver can do CUDA {driver.version}; GPUs: {driver.devices}")
    for kit in kits:
        support = _PLATFORM.support(kit.compute, {"cuda": driver.version}, platform_name())
        if isinstance(support, str):
            compat = f"cuda-compat-{kit.release.replace('.', '-')}"
            yield Trouble(
                f"the driver can do CUDA {driver.version}, and the toolkit is {kit.release}",
                "what is built does not run here: `driver version is insufficient`",
                f"apt-get install -y {compat}",
                Severity.WARNING,
            )


def cuda_libraries(bench: Bench) -> Iterator[Seen | Trouble]:
    """cuDNN, NCCL and MAGMA: where they are, and of which version header and library are."""
    for kit in _kits(bench) if bench.demand.is_torch else ():
        for feature in cuda_table().machine.features.values():
            yield from _feature(bench, kit, feature)


def _feature(bench: Bench, kit: _Kit, feature: FeatureFiles) -> Iterator[Seen | Trouble]:
    asked = bench.env.get(feature.switch, "")
    if asked in ("0", "OFF"):
        return
    for prefix in _prefixes(bench, kit, feature):
        header = next((h for n in feature.headers if (h := prefix / "include" / n).is_file()), None)
        library = _library(prefix, feature.library)
        if header is None or library is None:
            continue
        version = _version(header, feature.macros)
        yield Seen(f"{feature.title} {version} ({prefix})")
        named = re.search(r"\.so\.(\d+(?:\.\d+)+)$", library.resolve().name)
        numbers = version_numbers(named[1]) if named else ()
        if numbers and version and numbers != version_numbers(version)[: len(numbers)]:
            what = f"{feature.title} has headers of {version} and a library of {named and named[1]}"
            cure = f"export {feature.homes[0]}=DIRECTORY_OF_ONE_{feature.title.upper()}"
            yield Trouble(f"{what}, in {prefix}", "torch refuses it when it is imported", cure)
        return
    if feature.bundled:
        yield Seen(f"{feature.title}: the tree's own copy")
        return
    words = {
        "python": str(bench.python_program or "python"),
        "major": kit.release.partition(".")[0],
        "digits": kit.release.replace(".", ""),
    }
    severity = Severity.ERROR if asked else Severity.WARNING
    what = f"there is no {feature.title} with its headers"
    why = _SILENT.format(switch=feature.switch)
    yield Trouble(what, why, feature.cure.format(**words), severity)


def _prefixes(bench: Bench, kit: _Kit, feature: FeatureFiles) -> Iterator[Path]:
    """Yield the directories in which a library may be, in the order of CMake."""
    for home in feature.homes:
        if bench.env.get(home):
            yield Path(bench.env[home])
    for one in bench.env.get("CMAKE_PREFIX_PATH", "").split(":"):
        if one:
            yield Path(one)
    if kit.root:
        yield kit.root
    with suppress(HostError):
        prefix = Path(bench.environment.prefix)
        yield prefix
        yield from sorted(prefix.glob(f"lib/python3*/site-packages/{_PLATFORM.wheel_folders}"))
    yield from (Path("/usr/local"), Path("/usr"))


def _library(prefix: Path, name: str) -> Path | None:
    folders = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")
    for folder in folders:
        for found in sorted((prefix / folder).glob(f"{name}*"), key=lambda one: len(one.name)):
            return found
    return None


def _version(header: Path, macros: tuple[str, ...]) -> str:
    text = header.read_text(encoding="utf-8", errors="replace")
    found = [re.search(rf"#\s*define\s+{macro}\s+(\d+)", text) for macro in macros]
    return ".".join(one[1] for one in found if one)


CUDA_CHECKS = (
    make_check("cuda-toolkit", cuda_toolkit),
    make_check("cuda-host-compiler", cuda_host_compiler),
    make_check("cuda-variables", cuda_variables, by_hand=True),
    make_check("cuda-driver", cuda_driver),
    make_check("cuda-libraries", cuda_libraries, by_hand=True),
)
