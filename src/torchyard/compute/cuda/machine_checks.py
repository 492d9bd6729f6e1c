"""Checks of a machine that builds for CUDA: toolkit, host compiler, driver and libraries."""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from torchyard.compute.cuda import Cuda
from torchyard.compute.cuda.mixture import (
    other_headers,
    other_library,
    other_variables,
    other_wheels,
)
from torchyard.compute.cuda.table import CudaRow, cuda_table
from torchyard.compute.cuda.toolkit import (
    check_cuda_archs,
    find_cuda,
    system_roots,
    toolkit_root,
    toolkit_version,
)
from torchyard.compute.demand import compute_demand, demanded_kits
from torchyard.compute.features import SYSTEM_PREFIXES, FoundFeature, find_feature
from torchyard.compute.table import FeatureFiles
from torchyard.doctor.bench import Bench, is_on
from torchyard.doctor.check import Seen, Trouble, make_check
from torchyard.errors import ConfigError, HostError
from torchyard.host.machine import glibc_version, platform_name
from torchyard.model.severity import Severity
from torchyard.model.values import Value
from torchyard.model.version import version_numbers
from torchyard.toolchain.compilers import Compiler, check_host_compiler, query_compiler
from torchyard.toolchain.pypi import read_lock

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
_SILENT = "CMake turns {switch} off, and reports it only in its summary"


class _Kit(NamedTuple):
    """The toolkit of a build; one from PyPI has a lock, and no root yet."""

    compute: str
    release: str
    root: Path | None
    lock: str = ""

    @property
    def row(self) -> CudaRow | None:
        return cuda_table().rows.get(self.compute)


class _Driver(Value, kw_only=True):
    """The answer of the driver's library."""

    missing: str = ""
    status: int = 0
    version: str = ""
    devices: int = 0


def _root(bench: Bench) -> Path | None:
    """Return the toolkit that a manual build would use."""
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
    """Return the installed toolkits that the build uses."""
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
    assert bench.demand.toolchain is not None  # noqa: S101 - else the build is manual
    origin = bench.demand.toolchain.origin_of(_PLATFORM.name)
    kit = find_cuda(_PLATFORM.version(compute), origin)
    return _Kit(compute, kit.release, None if kit.lock else Path(kit.root), kit.lock)


def _host_compiler(bench: Bench) -> Compiler:
    """Return the compiler that nvcc calls for host code."""
    named = bench.env.get("CUDAHOSTCXX", "") if bench.by_hand else ""
    if not named:
        return bench.compiler
    program = bench.named_compiler("CUDAHOSTCXX", ())
    kind, version = query_compiler(program)
    return Compiler(kind=kind, cc=program, cxx=program, version=version, digest="")


def cuda_toolkit(bench: Bench) -> Iterator[Seen | Trouble]:
    """The requested CUDA toolkit is installed, and compiles for the architectures.

    A manual build uses CUDACXX, CUDA_HOME, CUDA_PATH, nvcc on PATH, or /usr/local/cuda.
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
            where = kit.root or "from PyPI, by the file's toolchain"
            yield Seen(f"CUDA {kit.release} ({where})")
            yield from _archs(bench, kit)


def _missing(bench: Bench, compute: str, other: _Kit | None) -> Iterator[Trouble]:
    release = _PLATFORM.version(compute)
    why = (
        "the build is for another CUDA, or for CPUs, without an error"
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
            what = f"the build uses CUDA {other.release if other else 'nowhere'}, not {release}"
            prefix = shlex.quote(str(root))
            yield Trouble(what, why, _choose(bench, prefix))
            return
    there = f"; the build uses {other.release} in {other.root}" if other else ""
    what = f"there is no CUDA {release}".strip() + there
    yield Trouble(what, why, _install(bench, release or max(_releases(), key=version_numbers)))


def _choose(bench: Bench, root: str) -> str:
    stray = " CUDACXX" if bench.env.get("CUDACXX") else ""
    unset = f"unset{stray}; " if stray else ""
    return f"{unset}export CUDA_HOME={root} CUDA_PATH={root} PATH={root}/bin:$PATH"


def _releases() -> list[str]:
    return [row.version for row in cuda_table().rows.values()]


def _install(bench: Bench, release: str, name: str = "cuda-toolkit") -> str:
    words = {"name": name, "dashed": release.replace(".", "-")}
    packages = cuda_table().machine.packages.items()
    named = {name: text.format(**words) for name, text in packages}
    return bench.install_packages(named) or f"install NVIDIA's {name} {release}"


def _archs(bench: Bench, kit: _Kit) -> Iterator[Trouble]:
    """Yield architectures that the toolkit can't compile for."""
    settings = (bench.env,) if bench.by_hand else bench.demand.settings.get(kit.compute, ())
    given = " ".join(row.get(_PLATFORM.cmake_archs, "") for row in settings).strip()
    archs = re.split(r"[;, ]+", given) if given else bench.demand.archs.get(kit.compute, ())
    archs = [arch for arch in archs if re.fullmatch(_PLATFORM.arch, arch)]
    if kit.root is None or not archs:
        return
    try:
        check_cuda_archs(find_cuda(kit.release, "system"), Path("/"), archs)
    except ConfigError as error:
        name = _PLATFORM.cmake_archs
        cure = f"unset {name}" if bench.by_hand else "correct `archs` of an [[override]]"
        if given and not bench.by_hand:
            cure = f"leave {name} out of the [[override]]: `archs` is for that"
        yield Trouble(str(error), "nvcc ends with `Unsupported gpu architecture`", cure)
    except HostError:
        return


def cuda_host_compiler(bench: Bench) -> Iterator[Seen | Trouble]:
    """The compiler nvcc accepts the host compiler and the C library; it compiles a kernel.

    Limits are in `data/compute/cuda.toml`; an installed toolkit is also tried.
    """
    for kit in _kits(bench):
        try:
            compiler = _host_compiler(bench)
        except HostError:
            return  # the check `compiler` reports it
        newest = bench.demand.newest.get(kit.compute) or (kit.row.compilers if kit.row else {})
        title = f"CUDA {kit.release}"
        try:
            check_host_compiler(title, compiler, newest)
        except HostError as error:
            why = "nvcc ends with `unsupported GNU version`"
            yield Trouble(str(error), why, _older(bench, compiler, newest))
            continue
        limit, glibc = kit.row and kit.row.glibc_max, glibc_version()
        failure = _tried(bench, kit, compiler)
        too_new = limit and glibc and version_numbers(glibc) > version_numbers(limit)
        if too_new and (failure or kit.root is None):  # Debian mends the headers of its own
            yield Trouble(
                f"{title} does not work with glibc {glibc}: the newest it accepts is {limit}",
                "nvcc ends with `exception specification is incompatible` in mathcalls.h",
                "torchyard toolchain root bookworm root" if not bench.by_hand else "",
            )
        elif failure:
            why = "CMake tries nvcc first, and stops if it fails"
            cure = _install(bench, kit.release)
            yield Trouble(f"nvcc of {title} can't compile: {failure}", why, cure)
        else:
            name = f"{compiler.kind} {compiler.version}"
            yield Seen(f"{title} with {name}" + (f" and glibc {glibc}" if glibc else ""))


def _older(bench: Bench, compiler: Compiler, newest: Mapping[str, str]) -> str:
    """Return the command that selects a host compiler accepted by the toolkit."""
    limit = newest[compiler.kind]
    for other in bench.other_compilers():
        fits = version_numbers(other.version)[:1] <= version_numbers(newest.get(other.kind, "0"))
        if fits and bench.by_hand:
            return f"export CUDAHOSTCXX={shlex.quote(other.cxx)}"
        if fits:
            return f'set `compiler = "{other.cc}"` in [toolchain]'
    install = bench.install_packages({"apt-get": f"g++-{limit}"})
    return f"{install} && export CUDAHOSTCXX=g++-{limit}" if install else ""


def _tried(bench: Bench, kit: _Kit, compiler: Compiler) -> str:
    """Return nvcc's error if it can't compile a kernel; empty if it can or is not installed."""
    if kit.root is None:
        return ""
    with TemporaryDirectory(prefix="torchyard-doctor-") as folder:
        source = Path(folder, "probe.cu")
        source.write_text(_KERNEL, encoding="utf-8")
        nvcc = kit.root / "bin/nvcc"
        done = bench.run(nvcc, "-ccbin", compiler.cxx, "-c", source, "-o", f"{folder}/probe.o")
    errors = [line for line in done.lines if "error" in line or "fatal" in line]
    reason = (errors or list(done.lines) or [done.signal or f"exit code {done.code}"])[0]
    return reason if done.code else ""


def cuda_variables(bench: Bench) -> Iterator[Seen | Trouble]:
    """CUDA_HOME, CUDA_PATH, CUDACXX and nvcc on PATH name the same toolkit."""
    if compute_demand(bench, _PLATFORM) is None:
        return
    taken = bench.which("nvcc")
    roots: dict[str, Path] = {}
    for name in (*_HOMES, "CUDACXX"):
        given = bench.env.get(name, "")
        nvcc = Path(given) if name == "CUDACXX" else Path(given, "bin/nvcc")
        if given and not nvcc.is_file():
            what = f"{name} is {given}, which has no nvcc"
            yield Trouble(what, "the build finds no CUDA, or mixes two", f"unset {name}")
        elif given:
            roots[name] = toolkit_root(nvcc)
    if taken:
        with suppress(HostError):
            roots["PATH"] = toolkit_root(taken)
    for name, root in roots.items():
        if "PATH" in roots and root != roots["PATH"]:
            yield Trouble(
                f"{name} names the CUDA in {root}, and nvcc on PATH is in {roots['PATH']}",
                "CMake, setup.py and extensions use different ones of these",
                f"unset {name}",
                Severity.WARNING,
            )


def cuda_driver(bench: Bench) -> Iterator[Seen | Trouble]:
    """NVIDIA's driver runs the toolkit's programs. Another process calls its library.

    Builds don't use it: without a driver, only tests on a GPU are impossible.
    """
    kits = _kits(bench)
    if not kits:
        return
    done = bench.run(sys.executable, "-I", "-c", _ASK_DRIVER, _LIBRARY)
    try:
        driver = msgspec.json.decode("\n".join(done.lines[-1:]), type=_Driver)
    except msgspec.MsgspecError:
        how = "does not answer" if done.late else f"crashes ({done.signal or done.code})"
        what = f"{_LIBRARY} {how} when asked for its version"
        yield Trouble(what, "programs for GPUs do the same", "nvidia-smi", Severity.WARNING)
        return
    if driver.missing:
        yield Seen("no driver of NVIDIA: builds work, tests on a GPU don't")
        return
    if driver.status:
        why = cuda_table().machine.statuses.get(str(driver.status), "see the driver API's CUresult")
        what = f"NVIDIA's driver (CUDA {driver.version}) answers with error {driver.status}"
        yield Trouble(what, why, "", Severity.WARNING)
        return
    yield Seen(f"NVIDIA's driver supports CUDA {driver.version}; GPUs: {driver.devices}")
    for kit in kits:
        support = _PLATFORM.support(kit.compute, {"cuda": driver.version}, platform_name())
        if isinstance(support, str):
            yield Trouble(
                f"the driver supports CUDA {driver.version}, but the toolkit is {kit.release}",
                "the build does not run here: `driver version is insufficient`",
                _install(bench, kit.release, "cuda-compat"),
                Severity.WARNING,
            )


def cuda_libraries(bench: Bench) -> Iterator[Seen | Trouble]:
    """cuBLAS, cuDNN, NCCL and MAGMA are installed, each with one version of headers and library.

    A cell of torch needs those that the file does not turn off; a manual build uses what it finds.
    """
    for kit in _kits(bench):
        for settings in bench.demand.settings.get(kit.compute, ({},)):
            env = bench.env | settings
            for name, feature in cuda_table().machine.features.items():
                asked = env.get(feature.switch, "")
                if is_on(asked) or (bench.demand.is_torch and not asked):
                    yield from _feature(bench, kit, feature, env, env.get(name, ""))


def _feature(
    bench: Bench, kit: _Kit, feature: FeatureFiles, env: Mapping[str, str], pin: str
) -> Iterator[Seen | Trouble]:
    found = find_feature(feature, _prefixes(bench, kit, feature, env))
    if found is not None:
        yield Seen(f"{feature.title} {found.version} ({found.prefix})".replace("  ", " "))
        yield from _versions(feature, found, pin)
    elif feature.wheel and any(name.startswith(feature.wheel) for name in _wheels(bench, kit)):
        yield Seen(f"{feature.title} from PyPI, by [build] or the toolkit")
    elif feature.bundled and not is_on(env.get(feature.system, "")):
        yield Seen(f"{feature.title}: the tree's own copy")
    else:
        words = {
            "python": str(bench.python_program or "python"),
            "major": kit.release.partition(".")[0],
            "digits": kit.release.replace(".", ""),
        }
        optional = bench.by_hand and feature.switch and feature.switch not in env
        what = f"there is no {feature.title} with its headers"
        why = _SILENT.format(switch=feature.switch) if feature.switch else "torch is linked to it"
        cure = feature.cure.format(**words) if bench.by_hand else _choice(kit, feature)
        yield Trouble(what, why, cure, Severity.WARNING if optional else Severity.ERROR)


def _choice(kit: _Kit, feature: FeatureFiles) -> str:
    """Return a hint for a library that a job lacks."""
    if kit.lock and not feature.switch:
        return 'set `cuda = "pypi-all"` in [toolchain]'
    home = f"set {feature.homes[0]} in `env` of an [[override]]" if feature.homes else ""
    off = f'turn it off there: {feature.switch} = "0"' if feature.switch else ""
    return "; or ".join(filter(None, (f"install {feature.title}", home, off)))


def _versions(feature: FeatureFiles, found: FoundFeature, pin: str) -> Iterator[Trouble]:
    """Yield version conflicts between header, library and pin."""
    named = re.search(r"\.so\.(\d+(?:\.\d+)+)$", found.library.resolve().name)
    numbers, version = version_numbers(named[1]) if named else (), version_numbers(found.version)
    if numbers and version and numbers != version[: len(numbers)]:
        what = (
            f"{feature.title} has headers of {found.version} and a library of {named and named[1]}"
        )
        cure = f"export {feature.homes[0]}=DIRECTORY_OF_ONE_{feature.title.upper()}"
        yield Trouble(f"{what}, in {found.prefix}", "torch refuses it when imported", cure)
    wanted = version_numbers(pin)
    if version and wanted and version != wanted[: len(version)]:
        what = f"{feature.title} is {found.version}, and wheels of this release require {pin}"
        why = "torch compiled with one version may refuse the other when imported"
        cure = f"install {feature.title} {pin}"
        is_other = version[0] != wanted[0]  # has another soname
        yield Trouble(what, why, cure, Severity.ERROR if is_other else Severity.WARNING)


def _wheels(bench: Bench, kit: _Kit) -> list[str]:
    """Return the distributions that a job installs for compiling."""
    locked = read_lock(kit.lock).versions if kit.lock else ()
    return [*bench.demand.pins, *locked]


def _prefixes(
    bench: Bench, kit: _Kit, feature: FeatureFiles, env: Mapping[str, str]
) -> Iterator[Path]:
    """Yield the directories to search for a library, in CMake's order."""
    named = [env.get(home, "") for home in feature.homes]
    listed = re.split("[:;]", env.get("CMAKE_PREFIX_PATH", ""))
    yield from map(Path, filter(None, (*named, *listed, str(kit.root or ""))))
    if bench.by_hand:
        with suppress(HostError):
            prefix = Path(bench.environment.prefix)
            yield prefix
            yield from sorted(prefix.glob(f"lib/python3*/site-packages/{_PLATFORM.wheel_folders}"))
    yield from SYSTEM_PREFIXES


def cuda_mixture(bench: Bench) -> Iterator[Trouble]:
    """Headers, libraries, wheels and variables of a build are of the same CUDA as its compiler."""
    for kit in _kits(bench):
        if kit.root is not None:
            yield from other_headers(kit.release, kit.root)
        if bench.by_hand:
            continue
        yield from other_wheels(bench.demand.pins, kit.release)
        for settings in bench.demand.settings.get(kit.compute, ()):
            yield from other_variables(settings, kit.root)
            for feature in cuda_table().machine.features.values():
                prefixes = _prefixes(bench, kit, feature, settings)
                if is_on(settings.get(feature.switch, "1")) and (
                    found := find_feature(feature, prefixes)
                ):
                    yield from other_library(bench, feature.title, found, kit.release)


CUDA_CHECKS = (
    make_check("cuda-toolkit", cuda_toolkit),
    make_check("cuda-host-compiler", cuda_host_compiler),
    make_check("cuda-variables", cuda_variables, by_hand=True),
    make_check("cuda-driver", cuda_driver),
    make_check("cuda-libraries", cuda_libraries),
    make_check("cuda-mixture", cuda_mixture),
)
