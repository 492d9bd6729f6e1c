"""Checks of a machine that builds for ROCm: hipcc, its include order, and the gcc behind it."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from torchyard.compute.demand import compute_demand, demanded_kits
from torchyard.compute.rocm import Rocm
from torchyard.compute.rocm.table import rocm_table
from torchyard.compute.rocm.toolkit import RocmToolkit, check_rocm_archs, find_rocm, query_rocm
from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, make_check
from torchyard.errors import ConfigError, HostError
from torchyard.model.severity import Severity
from torchyard.toolchain.variables import compose

_PLATFORM = Rocm()
_HOMES = ("ROCM_PATH", "HIP_PATH")
_DEFAULT = "/opt/rocm"
_HEADERS = re.compile(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", re.DOTALL)
_GCC = re.compile(r"Selected GCC installation: (\S+)")
_VERBOSE = ("-v", "--offload-arch=gfx900", "-x", "hip", "-E", "/dev/null", "-o", "/dev/null")


class _Verbose(NamedTuple):
    """The output of `hipcc -v`: the include directories in order, and its gcc."""

    folders: tuple[Path, ...]
    gcc: Path | None


def _kits(bench: Bench) -> list[RocmToolkit]:
    """Return the installed ROCm that the build uses."""
    kits = demanded_kits(bench, _PLATFORM, by_hand=_by_hand, of_job=_of_job)
    return bench.once("rocm-kits", lambda: list(kits))


def _by_hand(bench: Bench) -> RocmToolkit | None:
    root = _root(bench)
    return query_rocm(root) if root else None


def _of_job(_bench: Bench, compute: str) -> RocmToolkit:
    return find_rocm(_PLATFORM.version(compute))


def _root(bench: Bench) -> Path | None:
    """Return the ROCm that a manual build would use."""
    given = [Path(bench.env[name]) for name in _HOMES if bench.env.get(name)]
    hipcc = bench.which("hipcc")
    found = [hipcc.resolve().parent.parent] if hipcc else []
    roots = (*given, *found, Path(_DEFAULT))
    return next((root for root in roots if (root / "bin/hipcc").is_file()), None)


def rocm_toolkit(bench: Bench) -> Iterator[Seen | Trouble]:
    """The requested ROCm is installed, and compiles for the architectures, and for AMD."""
    demand = compute_demand(bench, _PLATFORM)
    if demand is None:
        return
    found = {rocm.release: rocm for rocm in _kits(bench)}
    for compute in demand.computes:
        release = _PLATFORM.version(compute)
        rocm = found.get(release) if compute else next(iter(found.values()), None)
        if rocm is None and demand.required:
            there = ", ".join(f"{other.version} in {other.root}" for other in found.values())
            what = f"there is no ROCm {release}".strip() + (f"; there is {there}" if there else "")
            cure = bench.install_packages(rocm_table().machine.packages)
            cure = cure or f"install ROCm {release} in {_DEFAULT}".replace("  ", " ")
            yield Trouble(what, "hipcc compiles the code for GPUs", cure)
        elif rocm is not None:
            yield Seen(f"ROCm {rocm.version} ({rocm.root})")
            try:
                check_rocm_archs(rocm, bench.demand.archs.get(compute, ()))
            except ConfigError as error:
                why = "clang ends with `unsupported HIP gpu architecture`"
                yield Trouble(str(error), why, "leave them out of `archs` in an [[override]]")
    platform = bench.env.get("HIP_PLATFORM", "amd")
    if bench.by_hand and found and platform != "amd":
        what = f"HIP_PLATFORM is {platform}"
        yield Trouble(what, "hipcc calls that platform's compiler", "export HIP_PLATFORM=amd")


def rocm_include_order(bench: Bench) -> Iterator[Seen | Trouble]:
    """Headers that others have, too, such as thrust's, come from ROCm, as `hipcc -v` shows.

    hipcc puts its own directory last, regardless of `-I` (ROCm/HIP issue 3587); CPLUS_INCLUDE_PATH
    puts it first.
    """
    for rocm in _kits(bench):
        output = _verbose(bench, rocm)
        if not output.folders:
            continue
        root = Path(rocm.root)
        strangers = {
            header: folder
            for header in rocm_table().machine.headers
            if (folder := next((f for f in output.folders if (f / header).is_file()), None))
            and not folder.resolve().is_relative_to(root.resolve())
            and (root / "include" / header).is_file()
        }
        for header, folder in strangers.items():
            given = bench.env.get("CPLUS_INCLUDE_PATH", "")
            value = ":".join(filter(None, (f"{root}/include", given)))
            yield Trouble(
                f"hipcc takes {header} from {folder}, not from {root}/include",
                "mixed headers conflict, usually in `thrust/complex.h`",
                f"export CPLUS_INCLUDE_PATH={shlex.quote(value)}",
            )
        if not strangers:
            yield Seen("hipcc searches " + ", ".join(map(str, output.folders[:4])))


def rocm_gcc(bench: Bench) -> Iterator[Seen | Trouble]:
    """The clang of hipcc uses the C++ library of the gcc that compiles everything else."""
    for rocm in _kits(bench):
        try:
            compiler = bench.compiler
            if compiler.kind != "gcc":
                return
            meant = Path(compiler.query("-print-libgcc-file-name")).parent
        except HostError:
            return  # the check `compiler` reports it
        taken = _verbose(bench, rocm).gcc
        if taken is None:
            continue
        if taken.resolve() == meant.resolve():
            yield Seen(f"hipcc uses the C++ library of {taken}")
            continue
        option = shlex.quote(f"--gcc-install-dir={meant}")
        yield Trouble(
            f"hipcc uses the C++ library of {taken}, but the build's gcc is in {meant}",
            "clang uses the newest gcc it finds; symbols of its library are missing later",
            f"export HIPCC_COMPILE_FLAGS_APPEND={option} HIPCC_LINK_FLAGS_APPEND={option}",
        )


def rocm_openmp(bench: Bench) -> Iterator[Seen | Trouble]:
    """OpenMP of ROCm's llvm is found; with ROCm's clang, CMake needs help to find it."""
    for rocm in _kits(bench):
        llvm = Path(rocm.clang).parent.parent
        library = next(iter(sorted(llvm.glob("lib/**/libomp.so"))), None)
        if library is not None:
            yield Seen(f"OpenMP of ROCm's llvm: {library}")
        clang = Path(bench.env.get("CC") or "cc").resolve()
        if clang == Path(rocm.clang).resolve() and not bench.env.get("OpenMP_ROOT"):
            yield Trouble(
                "ROCm's clang compiles everything, and OpenMP_ROOT is not set",
                "CMake does not find its OpenMP, and torch runs on one thread",
                f"export OpenMP_ROOT={shlex.quote(str(llvm))}",
                Severity.WARNING,
            )


def rocm_translation(bench: Bench) -> Iterator[Seen | Trouble]:
    """The tree's own script has translated it to HIP, before CMake runs."""
    if bench.source is None:
        return
    for rocm in _kits(bench):
        script = rocm_table().build_of(f"rocm{rocm.release}").translate
        pattern = rocm_table().machine.translated
        if script and (bench.source / script).is_file() and not any(bench.source.glob(pattern)):
            python = shlex.quote(str(bench.python_program or "python"))
            path = shlex.quote(str(bench.source / script))
            what = f"the tree is not translated to HIP: there is no {pattern}"
            yield Trouble(what, "CMake finds no sources for ROCm", f"{python} {path}")


def _verbose(bench: Bench, rocm: RocmToolkit) -> _Verbose:
    """Return hipcc's search directories in the build's environment."""
    return bench.once(("hipcc -v", rocm.root), lambda: _run_hipcc(bench, rocm))


def _run_hipcc(bench: Bench, rocm: RocmToolkit) -> _Verbose:
    env = dict(bench.env)
    if not bench.by_hand:
        with suppress(HostError):
            env = compose(env, rocm.variables("/", compiler=bench.compiler, archs=()))
    done = bench.run(f"{rocm.root}/bin/hipcc", *_VERBOSE, env=env | {"HIP_PLATFORM": "amd"})
    text = "\n".join(done.lines)
    found = _HEADERS.findall(text)
    gcc = _GCC.search(text)
    lines = (line.strip() for line in (found[-1] if found else "").splitlines())
    return _Verbose(tuple(map(Path, lines)), Path(gcc[1]) if gcc else None)


ROCM_CHECKS = (
    make_check("rocm-toolkit", rocm_toolkit),
    make_check("rocm-include-order", rocm_include_order),
    make_check("rocm-gcc", rocm_gcc),
    make_check("rocm-openmp", rocm_openmp, by_hand=True),
    make_check("rocm-translation", rocm_translation, by_hand=True),
)
