"""Checks of BLAS libraries: which ones exist, and which one the build would use."""

from collections.abc import Iterator
from pathlib import Path

from torchyard.doctor.bench import Bench
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.doctor.table import BlasFiles, machine_table
from torchyard.errors import HostError
from torchyard.model.severity import Severity
from torchyard.toolchain.blas import find_blas

_FOLDERS = ("lib", "lib64", "lib/intel64")
_SYSTEM = ("/usr/local", "/usr")
_LINKED = "the core is linked to it"
_SILENT = "CMake continues without it, and says so only in its summary"


@machine_check("blas")
def blas(bench: Bench) -> Iterator[Seen | Trouble]:
    """The requested BLAS is installed, with its headers; without a request: which one wins.

    A build by hand requests one by the variable BLAS, or by `--blas`. Without a request, the first
    one found is used, in the order of `data/platforms.toml`; torch needs one.
    """
    if bench.by_hand:
        yield from _of_shell(bench)
        return
    assert bench.demand.toolchain is not None  # noqa: S101 - else it is by hand
    try:
        compiler = bench.compiler
    except HostError:
        return  # reported by `compiler`
    for name in bench.demand.blas:
        try:
            found = find_blas(name, bench.demand.toolchain.blas, compiler)
        except HostError as error:
            cure = bench.install(name) or 'set `blas = "auto"` in [toolchain]'
            yield Trouble(str(error), _LINKED, cure)
        else:
            yield Seen(f"{found.name} {found.version} from {found.origin}")
            unfit = machine_table().blas[name].unfit
            if unfit and bench.demand.is_torch and found.origin == "pypi":
                cure = 'set `blas = "system"` in [toolchain]'
                yield Trouble(f"torch does not find the {name} of PyPI: {unfit}", _LINKED, cure)


def _of_shell(bench: Bench) -> Iterator[Seen | Trouble]:
    table = machine_table().blas
    known = [name for name in bench.demand.blas_names if name in table]
    asked = bench.env.get("BLAS", "").lower()
    wanted = bench.demand.blas or tuple(n for n in known if table[n].cmake.lower() == asked)
    libraries = {name: _find_library(bench, table[name]) for name in known}
    there = {name: folder for name, folder in libraries.items() if folder}
    for name in wanted:
        if name not in there and name in table:
            what = f"{table[name].cmake} is requested, but not installed with its headers"
            yield Trouble(what, _SILENT, _install(bench, name))
    for name, folder in there.items():
        wins = name in wanted or (not wanted and name == next(iter(there)))
        yield Seen(f"{table[name].cmake} in {folder}{': the build uses it' if wins else ''}")
    if not wanted and not there and bench.demand.is_torch:
        names = ", ".join(table[name].cmake for name in known)
        what = f"there is no BLAS with its headers: none of {names}"
        why = "matrix products are slow, and linear algebra fails at run time"
        cure = _install(bench, "openblas" if "openblas" in known else known[0])
        yield Trouble(what, why, cure, Severity.WARNING)


def _find_library(bench: Bench, files: BlasFiles) -> Path | None:
    """Return the BLAS library that CMake would find first, with its headers nearby."""
    prefixes = [bench.env[home] for home in files.homes if bench.env.get(home)]
    prefixes += filter(None, bench.env.get("CMAKE_PREFIX_PATH", "").split(":"))
    binaries = (Path(folder) for folder in bench.folders if Path(folder).name.endswith("bin"))
    prefixes += [str(folder.parent) for folder in binaries]
    for prefix in dict.fromkeys((*prefixes, *_SYSTEM)):
        header = any(Path(prefix, "include", name).is_file() for name in files.headers)
        multiarch = _multiarch(bench) if prefix in _SYSTEM else ()
        if not header and not any(
            Path(prefix, "include", triplet, name).is_file()
            for triplet in multiarch
            for name in files.headers
        ):
            continue
        folders = (*_FOLDERS, *(f"lib/{triplet}" for triplet in multiarch))
        for folder in folders:
            for name in files.libraries:
                if Path(prefix, folder, name).is_file():
                    return Path(prefix, folder, name)
    return None


def _multiarch(bench: Bench) -> tuple[str, ...]:
    """Return the system's multiarch folder of libraries, if it has one."""
    try:
        return tuple(filter(None, [bench.compiler.query("-print-multiarch")]))
    except HostError:
        return ()


def _install(bench: Bench, name: str) -> str:
    """Return the command that installs a BLAS: into the environment, or else the system."""
    pip = machine_table().blas[name].pip.split()
    return bench.pip_install(*pip) if pip and bench.takes_pip else bench.install(name)
