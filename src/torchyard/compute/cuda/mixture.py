"""Parts of another CUDA than a cell's: headers, libraries, wheels and variables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from torchyard.compute.features import FoundFeature
from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Trouble

_HOMES = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT")
_RPATHS = re.compile(r"CMAKE_(?:BUILD|INSTALL)_RPATH|(?:CMAKE_\w+_LINKER_|LD)FLAGS|LD_LIBRARY_PATH")
_NEEDED = re.compile(r"\(NEEDED\).*\[lib(?:cudart|cublas|cublasLt)\.so\.(\d+)")
_MIXED = "torch's libraries would load two versions of CUDA, and crash or refuse to work"


def other_headers(release: str, root: Path) -> Iterator[Trouble]:
    """Yield a trouble if a toolkit's headers are of another release than its compiler."""
    header = root / "include/cuda.h"
    text = header.read_text(encoding="utf-8", errors="replace") if header.is_file() else ""
    if found := re.search(r"#define CUDA_VERSION (\d+)", text):
        number = int(found[1])
        named = f"{number // 1000}.{number % 1000 // 10}"
        if named != release:
            what = f"nvcc in {root} is of CUDA {release}, and cuda.h beside it of {named}"
            yield Trouble(what, _MIXED, f"install CUDA {release} in a directory of its own")


def other_wheels(pins: Iterable[str], release: str) -> Iterator[Trouble]:
    """Yield wheels with libraries for another CUDA."""
    major = release.partition(".")[0]
    for name in pins:
        found = re.fullmatch(r"nvidia-[\w-]+-cu(\d+)", name)
        if found and found[1] != major:
            what = f"[build] requires {name}, which is for CUDA {found[1]}; the cell's is {release}"
            yield Trouble(what, _MIXED, f"require {name.removesuffix(found[1])}{major}")


def other_library(bench: Bench, title: str, found: FoundFeature, release: str) -> Iterator[Trouble]:
    """Yield a trouble if a shared library was linked with another CUDA."""
    if ".so" not in found.library.name:
        return
    lines = bench.run("readelf", "--dynamic", found.library).lines
    needed = {match[1] for line in lines if (match := _NEEDED.search(line))}
    if needed - {release.partition(".")[0]}:
        what = f"{title} in {found.prefix} was linked with CUDA {' and '.join(sorted(needed))}"
        yield Trouble(f"{what}, and the cell is for {release}", _MIXED, f"install {title} for it")


def other_variables(settings: Mapping[str, str], root: Path | None) -> Iterator[Trouble]:
    """Yield variables that name another toolkit, or make packages load the driver's stub."""
    for name in _HOMES:
        given = settings.get(name, "")
        if given and (root is None or Path(given).resolve() != root.resolve()):
            what = f"{name} is {given} in an [[override]], and the cell's CUDA is {root or 'PyPI'}"
            yield Trouble(what, _MIXED, "leave it out: torchyard sets it")
    for name, value in settings.items():
        if _RPATHS.fullmatch(name) and "/stubs" in value:
            what = f"{name} makes packages search {value}, with a stub in place of libcuda.so.1"
            why = "programs load the stub instead of the driver, and find no GPU"
            yield Trouble(what, why, "leave it out: the linker needs it, packages don't")
