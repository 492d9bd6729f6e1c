"""BLAS libraries: MKL and OpenBLAS from PyPI or the system, and the system's generic BLAS."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from torchyard.errors import HostError
from torchyard.model.toolchain import Origin
from torchyard.model.values import Value
from torchyard.toolchain.compilers import Compiler
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.pypi import install, read_lock
from torchyard.toolchain.variables import search

_CMAKE = {"mkl": "MKL", "openblas": "OpenBLAS", "generic": "Generic"}
_HOME = {"mkl": ("MKLROOT", "INTEL_MKL_DIR"), "openblas": ("OpenBLAS_HOME",)}
_NAMES = {"generic": {"GENERIC_BLAS_LIBRARIES": "blas"}}
"""Variables for PyTorch's CMake code, which else looks for a library with an empty name."""

_PACKAGE = {"mkl": "mkl-static", "openblas": "scipy-openblas32"}
_ROOT = {"mkl": ".", "openblas": "scipy_openblas32"}
_MKL_PLACES = ("/opt/intel/oneapi/mkl/latest", "/opt/intel/oneapi/mkl/*", "/opt/intel/mkl", "/usr")
_HEADERS = ["-E", "-dM", "-include", "openblas_config.h", "-include", "cblas.h", "-xc", "/dev/null"]
_MKL_CORE = ("libmkl_core.a", "libmkl_core.so", "libmkl_rt.so")


class Blas(Value, kw_only=True):
    """A BLAS library.

    `root` is empty if the compiler finds the library by itself, and relative if it is from PyPI.
    """

    name: str
    version: str
    origin: Literal["system", "pypi"]
    digest: str
    root: str = ""
    library: str = "lib"

    @property
    def identity(self) -> str:
        """Name, version, origin and digest, independent of its location."""
        return " ".join(
            filter(None, (self.name, self.version, self.origin, f"sha256:{self.digest[:16]}"))
        )


def find_blas(
    name: str, origin: Origin, compiler: Compiler, digests: Digests | None = None
) -> Blas:
    """Return the library to use, without installing it.

    With `auto`, PyPI precedes the system: its pins are the same on every machine.
    """
    if name not in _CMAKE:
        msg = f"torchyard does not know the BLAS `{name}`"
        raise HostError(msg, hint=f"use one of {', '.join(_CMAKE)}")
    if origin != "system" and name in _PACKAGE:
        lock = read_lock(name)
        version = lock.versions[_PACKAGE[name]]
        root = _ROOT[name]
        return Blas(name=name, version=version, origin="pypi", digest=lock.digest, root=root)
    found = _FIND[name](compiler, digests or Digests())
    if found is None:
        msg = f"there is no {_CMAKE[name]} BLAS on this machine"
        raise HostError(msg, hint=_HINTS[name])
    return found


def install_blas(blas: Blas, folder: Path, python: str) -> None:
    """Install the library if it comes from PyPI."""
    if blas.origin == "pypi":
        install(read_lock(blas.name), folder, python)


def blas_variables(blas: Blas, folder: str) -> dict[str, str]:
    """Return the variables for steps that use it, given its folder."""
    env = {"BLAS": _CMAKE[blas.name]} | _NAMES.get(blas.name, {})
    if not blas.root:
        return env
    root = str(Path(folder, blas.root))  # an absolute root is kept
    return env | dict.fromkeys(_HOME[blas.name], root) | search(root, library=blas.library)


def root_of(name: str, env: Mapping[str, str]) -> str:
    """Return the root of a library from variables; empty if the compiler finds it by itself."""
    return next((env[home] for home in _HOME.get(name, ()) if home in env), "")


def _openblas(compiler: Compiler, digests: Digests) -> Blas | None:
    library = compiler.library("libopenblas.so")
    if library is None:
        return None
    try:
        macros = compiler.query(*_HEADERS)
    except HostError:  # no headers
        return None
    version = re.search(r"#define OPENBLAS_VERSION \"\D*([\d.]+)", macros)
    digest = digests.of({"library": library})
    return Blas(
        name="openblas", version=version[1] if version else "", origin="system", digest=digest
    )


def _generic(compiler: Compiler, digests: Digests) -> Blas | None:
    files = {name: compiler.library(f"lib{name}.so") for name in ("blas", "lapack")}
    there = {name: path for name, path in files.items() if path}
    if "blas" not in there:
        return None
    return Blas(name="generic", version="", origin="system", digest=digests.of(there))


def _mkl(compiler: Compiler, digests: Digests) -> Blas | None:
    triplet = compiler.query("-print-multiarch") if compiler.kind == "gcc" else ""
    for pattern in _MKL_PLACES:
        for root in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            if found := mkl_in(root, (f"lib/{triplet}", "lib", "lib/intel64"), digests):
                return found
    return None


def mkl_in(root: Path, libraries: tuple[str, ...], digests: Digests) -> Blas | None:
    """Return the MKL in a folder, or None."""
    headers = [root / "include/mkl_version.h", root / "include/mkl/mkl_version.h"]
    header = next((path for path in headers if path.is_file()), None)
    for library in libraries:
        files = {name: root / library / name for name in _MKL_CORE}
        there = {name: path for name, path in files.items() if path.is_file()}
        if header and there:
            digest = digests.of(there | {"header": header})
            version = _mkl_version(header)
            paths = {"root": str(root), "library": library.rstrip("/")}
            return Blas(name="mkl", version=version, origin="system", digest=digest, **paths)
    return None


def _mkl_version(header: Path) -> str:
    text = header.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"#define INTEL_MKL_VERSION\s+(\d{4})(\d\d)(\d\d)", text)
    return ".".join(str(int(number)) for number in found.groups()) if found else ""


_FIND = {"mkl": _mkl, "openblas": _openblas, "generic": _generic}
_HINTS = {
    "mkl": 'set `blas = "pypi"` in [toolchain], or install Intel oneMKL in /opt/intel',
    "openblas": 'install libopenblas-dev, or set `blas = "pypi"` in [toolchain]',
    "generic": "install libblas-dev and liblapack-dev",
}
