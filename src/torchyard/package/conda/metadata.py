"""The metadata of a conda package: names, build strings, pins and requirements.

The only data file is `data/conda.toml`. Names, build strings, numbers, run exports and
constraints are those of conda-forge's pytorch-cpu-feedstock; the linalg plugin's pins are ours.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import assert_never

import msgspec
from packaging.version import InvalidVersion, Version

from torchyard.compute.registry import platform_for
from torchyard.config.tables import load_tables
from torchyard.errors import BuildError, PlanError
from torchyard.model.matrix import any_match
from torchyard.model.suggest import did_you_mean
from torchyard.model.tables import Python, python_of
from torchyard.model.values import Value
from torchyard.model.version import version_numbers
from torchyard.package.conda.linked import LinkedPackages
from torchyard.package.conda.name import SUFFIX
from torchyard.package.conda.requirements import conda_requirements
from torchyard.package.conda.table import Names, load_conda_table

_SYSTEM = re.compile(r"(?P<kind>manylinux|macosx)_(?P<major>\d+)_(?P<minor>\d+)_")


class CondaKind(StrEnum):
    """The conda packages of a project, named as in `data/packages.toml`."""

    PACKAGE = "conda"
    TESTS = "conda-tests"
    LIBRARIES = "conda-libtorch"
    LINALG = "conda-linalg"
    META = "conda-meta"


class CondaBuild(Value, kw_only=True):
    """The common properties of a build's packages; `python` is a tag such as `cp312`.

    An extension has no core of its own, and so no `core_hash`. `glibc` is the oldest that works, if
    known; the platform's tag promises at least its own. With `channel_libraries`, the channel's
    packages provide the libraries in `needed` that are in the table, in versions of its `pins`.
    `symbols` are the symbol versions that the system and the compiler's runtime must have.
    `license` is an SPDX expression for projects that do not state theirs. `linked` are the packages
    of the conda environments that it was built in, if it was, and `outside` their libraries.
    """

    name: str
    version: str
    compute: str
    blas: str
    subdir: str
    build_hash: str
    core_hash: str | None = None
    number: int = 0
    python: str | None = None
    requires: tuple[str, ...] = ()
    linalg_apart: bool = False
    magma: bool = True
    glibc: tuple[int, int] | None = None
    channel_libraries: bool = False
    pins: dict[str, str] = {}
    needed: frozenset[str] = frozenset()
    symbols: frozenset[str] = frozenset()
    license: str = ""
    linked: LinkedPackages | None = None
    outside: tuple[str, ...] = ()


class CondaMetadata(Value, kw_only=True):
    """The metadata of a package for solvers, and its run exports."""

    name: str
    version: str
    build: str
    number: int
    subdir: str
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    run_exports: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}-{self.build}{SUFFIX}"


def describe(kind: CondaKind, build: CondaBuild) -> CondaMetadata:
    """Return the metadata of a build's package."""
    if build.subdir not in load_conda_table().markers:
        msg = f"conda packages can't be laid out for {build.subdir}"
        hint = did_you_mean(build.subdir, load_conda_table().markers)
        raise PlanError(msg, hint=hint)
    if kind is CondaKind.LINALG and not _is_gpu(build):
        msg = f"{build.compute} has no linalg plugin: it is a part of GPU builds"
        raise PlanError(msg, hint="leave conda-linalg out for it")
    names = names_of(build.name)
    match kind:
        case CondaKind.PACKAGE:
            return _package(build, names)
        case CondaKind.TESTS:
            return _tests(build, names)
        case CondaKind.LIBRARIES:
            return _libraries(build, names)
        case CondaKind.LINALG:
            return _linalg(build, names)
        case CondaKind.META:
            return _meta(build, names)
        case _:
            assert_never(kind)


def names_of(project: str) -> Names:
    """Return the names of a project's packages: its own, or the default ones."""
    names = load_conda_table().names
    row = msgspec.structs.asdict(names.get(project, names["*"]))
    return Names(**{kind: name.format(name=project) for kind, name in row.items()})


def build_number(build: CondaBuild) -> int:
    """Return the build number, by which solvers choose between builds of a version."""
    offsets = load_conda_table().offsets
    mkl = offsets.mkl if build.blas == "mkl" else 0
    platform = platform_for(build.compute)
    if not platform.conda_virtual_package:
        return build.number + mkl
    toolkit = int("".join(map(str, version_numbers(platform.version(build.compute)))))
    return build.number + mkl + offsets.driver + offsets.toolkit * toolkit


def flavour(build: CondaBuild) -> str:
    """Return the prefix of build strings: `cpu_generic`, `cuda130_mkl`."""
    compute = platform_for(build.compute).conda_build(build.compute)
    return f"{compute}_{build.blas}".replace(".", "")  # the variant may be `torch2.13`


def _package(build: CondaBuild, names: Names) -> CondaMetadata:
    version = conda_version(build.version)
    depends = [*_python(build), *_system(build), *_brought(build)]
    constrains = _constrained(build)
    exports = [names.package]
    platform = platform_for(build.compute)
    if platform.conda_virtual_package:  # keeps this build from machines without such a driver
        family = platform.driver_family(build.compute)
        depends.append(f"{platform.conda_virtual_package} >={family}")
    if build.core_hash is not None:
        libraries = _libraries(build, names)
        depends.append(f"{libraries.name} =={version} {libraries.build}")
        constrains += _either(build, names)
        exports.append(names.libraries)
        if build.linalg_apart:
            depends.append(_any_linalg(build, names))
    python = python_for(build).version
    depends += conda_requirements(build.requires, build.name, python, build.subdir)
    return _metadata(
        build,
        names.package,
        _py(build),
        f"h{build.build_hash}",
        depends=depends,
        constrains=constrains,
        run_exports=[_pin(name, version) for name in exports],
    )


def _tests(build: CondaBuild, names: Names) -> CondaMetadata:
    version, number = conda_version(build.version), build_number(build)
    tested = f"{names.package} =={version} {flavour(build)}_{_py(build)}_*_{number}"
    depends = [tested, *load_conda_table().tests.depends]
    return _metadata(build, names.tests, _py(build), f"h{build.build_hash}", depends=depends)


def _libraries(build: CondaBuild, names: Names) -> CondaMetadata:
    version = conda_version(build.version)
    blas = load_conda_table().blas.get(build.blas)
    constrains = [*_either(build, names), _any_package(build, names)]
    if build.linalg_apart:
        constrains.append(_any_linalg(build, names))
    return _metadata(
        build,
        names.libraries,
        _core(build),
        depends=[
            *_system(build),
            *(blas.depends if blas else ()),
            *_brought(build),
        ],
        constrains=[*constrains, *_constrained(build), *(blas.constrains if blas else ())],
        run_exports=[_pin(names.libraries, version)],
    )


def _linalg(build: CondaBuild, names: Names) -> CondaMetadata:
    libraries = _libraries(build, names)
    core = f"{libraries.name} =={libraries.version} {libraries.build}"
    more = load_conda_table().offsets.magma if build.magma else 0
    return _metadata(
        msgspec.structs.replace(build, number=build.number + more),
        names.linalg,
        "magma" if build.magma else "nomagma",
        _core(build),
        depends=[*_system(build), core, *_brought(build)],
        constrains=_constrained(build),
    )


def _meta(build: CondaBuild, names: Names) -> CondaMetadata:
    """Return the metapackage for all Pythons, which requires builds of a flavour and number."""
    name = names.gpu if _is_gpu(build) else names.cpu
    return _metadata(build, name, _core(build), depends=[_any_package(build, names)])


def _metadata(
    build: CondaBuild,
    name: str,
    *parts: str,
    depends: Iterable[str] = (),
    constrains: Iterable[str] = (),
    run_exports: Iterable[str] = (),
) -> CondaMetadata:
    number = build_number(build)
    return CondaMetadata(
        name=name,
        version=conda_version(build.version),
        build="_".join((flavour(build), *parts, str(number))),
        number=number,
        subdir=build.subdir,
        depends=tuple(dict.fromkeys(depends)),
        constrains=tuple(constrains),
        run_exports=tuple(run_exports),
    )


def conda_version(version: str) -> str:
    """Return a version without its local part: the build string replaces `+cu130`."""
    try:
        return Version(version).public
    except InvalidVersion as error:
        msg = f"conda does not support the version `{version}`: {error}"
        raise BuildError(msg, hint="use a version such as 2.14.0 or 2.14.0.dev20261114") from error


def _pin(name: str, version: str) -> str:
    """Return a pin that is compatible up to the next minor version."""
    parsed = Version(version)
    return f"{name} >={version},<{parsed.major}.{parsed.minor + 1}.0a0"


def _core(build: CondaBuild) -> str:
    return f"h{build.core_hash or build.build_hash}"


def _is_gpu(build: CondaBuild) -> bool:
    return platform_for(build.compute).is_gpu


def python_for(build: CondaBuild) -> Python:
    """Return the Python of a build; fail if it has none."""
    python = python_of(build.python or "")
    if python is None:
        msg = f"a conda package with bindings needs a Python, not `{build.python}`"
        raise PlanError(msg, hint="name one by its tag, such as cp312")
    return python


def _py(build: CondaBuild) -> str:
    python = python_for(build)
    return f"py{python.version.replace('.', '')}{'t' if python.free_threaded else ''}"


def _python(build: CondaBuild) -> Iterator[str]:
    """Yield the interpreter and its ABI, as a free-threaded Python has the same version."""
    python = python_for(build)
    major, minor = map(int, python.version.split("."))
    yield f"python >={python.version},<{major}.{minor + 1}.0a0"
    yield f"python_abi {python.version}.* *_{build.python}"


def _system(build: CondaBuild) -> Iterator[str]:
    """Yield requirements for the oldest system that the build supports."""
    for platform in load_tables().platforms.values():
        if platform.conda_subdir == build.subdir:
            found = _SYSTEM.match(platform.wheel_tag)
            if found and found["kind"] == "manylinux":
                least = max(build.glibc or (0, 0), (int(found["major"]), int(found["minor"])))
                yield f"__glibc >={least[0]}.{least[1]},<3.0.a0"
            elif found:
                yield f"__osx >={found['major']}.{found['minor']}"


def _runtimes(build: CondaBuild) -> Iterator[str]:
    """Yield the packages with the compiler's runtime libraries, at least as new as needed."""
    for row in load_conda_table().runtimes:
        if row.soname in build.needed:
            yield row.requirement(build.symbols)


def _brought(build: CondaBuild) -> Iterator[str]:
    """Yield packages with libraries that the build needs, of its environments or by the tables."""
    if build.linked is not None:
        yield from build.linked.depends
        return
    yield from _runtimes(build)
    if build.channel_libraries:
        for row in load_conda_table().libraries:
            if any(any_match(library, row.sonames) for library in build.needed):
                yield row.requirement(build.pins)


def _constrained(build: CondaBuild) -> list[str]:
    return [*build.linked.constrains] if build.linked else []


def _either(build: CondaBuild, names: Names) -> Iterator[str]:
    """Yield constraints that exclude packages of the other kind, CPU or GPU."""
    ours, other = (names.gpu, names.cpu) if _is_gpu(build) else (names.cpu, names.gpu)
    yield f"{ours} =={conda_version(build.version)}"
    yield f"{other} <0.0a0"


def _any_package(build: CondaBuild, names: Names) -> str:
    """Return a requirement for the package of any Python."""
    version, number = conda_version(build.version), build_number(build)
    return f"{names.package} =={version} {flavour(build)}_*_{number}"


def _any_linalg(build: CondaBuild, names: Names) -> str:
    """Return a requirement for the plugin of the same core, with or without MAGMA."""
    version = conda_version(build.version)
    return f"{names.linalg} =={version} {flavour(build)}_*_{_core(build)}_*"
