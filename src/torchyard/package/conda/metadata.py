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
from torchyard.model.conda_output import Bound, CondaOutput, CondaOutputs
from torchyard.model.matrix import any_match
from torchyard.model.suggest import did_you_mean
from torchyard.model.tables import Python, python_of
from torchyard.model.values import Value
from torchyard.model.version import version_numbers
from torchyard.package.conda.linked import LinkedPackages
from torchyard.package.conda.name import SUFFIX, required_name
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


_STRINGS = {
    CondaKind.PACKAGE: "{flavour}_{python}_{hash}_{number}",
    CondaKind.TESTS: "{flavour}_{python}_{hash}_{number}",
    CondaKind.LIBRARIES: "{flavour}_{hash}_{number}",
    CondaKind.LINALG: "{flavour}_{magma}_{hash}_{number}",
    CondaKind.META: "{flavour}_{hash}_{number}",
}
"""The build strings, unless the file has others."""

_PINS: dict[CondaKind, Bound] = {CondaKind.PACKAGE: "x.x", CondaKind.LIBRARIES: "x.x"}
"""The run exports of packages, unless the file has others."""


class CondaBuild(Value, kw_only=True):
    """The common properties of a build's packages; `python` is a tag such as `cp312`.

    An extension has no core of its own, and so no `core_hash`. `glibc` is the oldest that works, if
    known; the platform's tag promises at least its own. With `channel_libraries`, the channel's
    packages provide the libraries in `needed` that are in the table, in versions of its `pins`.
    `symbols` are the symbol versions that the system and the compiler's runtime must have.
    `license` is an SPDX expression for projects that do not state theirs. `linked` are the packages
    of the conda environments that it was built in, if it was, and `outside` their libraries;
    `host` are the versions of their packages. `outputs` are what the file says about packages.
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
    outputs: dict[str, CondaOutput] = {}
    host: dict[str, str] = {}


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
    track_features: tuple[str, ...] = ()

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
    match kind:
        case CondaKind.PACKAGE:
            return _package(build)
        case CondaKind.TESTS:
            return _tests(build)
        case CondaKind.LIBRARIES:
            return _libraries(build)
        case CondaKind.LINALG:
            return _linalg(build)
        case CondaKind.META:
            return _metadata(build, kind, depends=[_any_package(build)])  # for all Pythons
        case _:
            assert_never(kind)


def names_of(project: str, outputs: CondaOutputs) -> Names:
    """Return the names of a project's packages: the file's, its own in the table, or default."""
    names = load_conda_table().names
    row = msgspec.structs.asdict(names.get(project, names["*"]))
    found = {kind: name.format(name=project) for kind, name in row.items()}
    for kind, output in outputs.items():
        for field in _FIELDS[CondaKind(kind)] if output.name else ():
            found[field] = (output.name or "").format(device=field)
    return Names(**found)


_FIELDS = {
    CondaKind.PACKAGE: ("package",),
    CondaKind.TESTS: ("tests",),
    CondaKind.LIBRARIES: ("libraries",),
    CondaKind.LINALG: ("linalg",),
    CondaKind.META: ("cpu", "gpu"),
}
"""The fields of `Names` for each kind."""


def build_number(build: CondaBuild, kind: CondaKind) -> int:
    """Return the build number, by which solvers choose between builds of a version."""
    offsets = load_conda_table().offsets
    number = build.number + _output(build, kind).build_offset
    number += offsets.mkl if build.blas == "mkl" else 0
    number += offsets.magma if kind is CondaKind.LINALG and build.magma else 0
    platform = platform_for(build.compute)
    if not platform.conda_virtual_package:
        return number
    toolkit = int("".join(map(str, version_numbers(platform.version(build.compute)))))
    return number + offsets.driver + offsets.toolkit * toolkit


def flavour(build: CondaBuild) -> str:
    """Return the prefix of build strings: `cpu_generic`, `cuda130_mkl`."""
    compute = platform_for(build.compute).conda_build(build.compute)
    return f"{compute}_{build.blas}".replace(".", "")  # the variant may be `torch2.13`


def _output(build: CondaBuild, kind: CondaKind) -> CondaOutput:
    return build.outputs.get(kind, CondaOutput())


def _name(build: CondaBuild, kind: CondaKind) -> str:
    names = names_of(build.name, build.outputs)
    first, *other = _FIELDS[kind]
    return str(getattr(names, other[0] if other and _is_gpu(build) else first))


def _version(build: CondaBuild, kind: CondaKind) -> str:
    return _output(build, kind).version or conda_version(build.version)


def _build_string(build: CondaBuild, kind: CondaKind, *any_: str) -> str:
    """Return a build string, or a glob for builds that differ in some words."""
    is_python = kind in (CondaKind.PACKAGE, CondaKind.TESTS)
    words = {
        "flavour": flavour(build),
        "python": _py(build) if is_python and "python" not in any_ else "any",
        "hash": f"h{build.build_hash if is_python else build.core_hash or build.build_hash}",
        "number": str(build_number(build, kind)),
        "magma": "magma" if build.magma else "nomagma",
    }
    text = _output(build, kind).build_string or _STRINGS[kind]
    return re.sub(r"\*(?:_\*)+", "*", text.format(**words | dict.fromkeys(any_, "*")))


def _package(build: CondaBuild) -> CondaMetadata:
    depends = [*_python(build), *_system(build), *_brought(build, CondaKind.PACKAGE)]
    constrains = _constrained(build)
    exports = list[str]()
    platform = platform_for(build.compute)
    if platform.conda_virtual_package:  # keeps this build from machines without such a driver
        family = platform.driver_family(build.compute)
        depends.append(f"{platform.conda_virtual_package} >={family}")
    if build.core_hash is not None:
        depends.append(_exact(build, CondaKind.LIBRARIES))
        constrains += _either(build)
        exports += _run_export(build, CondaKind.LIBRARIES)
        if build.linalg_apart:
            depends.append(_any_linalg(build))
    python = python_for(build).version
    depends += conda_requirements(build.requires, build.name, python, build.subdir)
    return _metadata(
        build, CondaKind.PACKAGE, depends=depends, constrains=constrains, run_exports=exports
    )


def _tests(build: CondaBuild) -> CondaMetadata:
    tested = _exact(build, CondaKind.PACKAGE, "hash")
    return _metadata(build, CondaKind.TESTS, depends=[tested, *load_conda_table().tests.depends])


def _libraries(build: CondaBuild) -> CondaMetadata:
    blas = load_conda_table().blas.get(build.blas)
    constrains = [*_either(build), _any_package(build)]
    if build.linalg_apart:
        constrains.append(_any_linalg(build))
    return _metadata(
        build,
        CondaKind.LIBRARIES,
        depends=[
            *_system(build),
            *(blas.depends if blas else ()),
            *_brought(build, CondaKind.LIBRARIES),
        ],
        constrains=[*constrains, *_constrained(build), *(blas.constrains if blas else ())],
    )


def _linalg(build: CondaBuild) -> CondaMetadata:
    core = _exact(build, CondaKind.LIBRARIES)
    return _metadata(
        build,
        CondaKind.LINALG,
        depends=[*_system(build), core, *_brought(build, CondaKind.LINALG)],
        constrains=_constrained(build),
    )


def _metadata(
    build: CondaBuild,
    kind: CondaKind,
    *,
    depends: Iterable[str] = (),
    constrains: Iterable[str] = (),
    run_exports: Iterable[str] = (),
) -> CondaMetadata:
    output = _output(build, kind)
    pinned = [_pinned(build, name, bound) for name, bound in output.pin_compatible.items()]
    return CondaMetadata(
        name=_name(build, kind),
        version=_version(build, kind),
        build=_build_string(build, kind),
        number=build_number(build, kind),
        subdir=build.subdir,
        depends=_replaced(depends, (*pinned, *output.depends)),
        constrains=_replaced(constrains, output.constrains),
        run_exports=(*_run_export(build, kind), *run_exports),
        track_features=output.track_features,
    )


def _replaced(ours: Iterable[str], given: tuple[str, ...]) -> tuple[str, ...]:
    """Return requirements, those of the file instead of ours for the same packages."""
    names = {*map(required_name, given)}
    kept = (spec for spec in ours if required_name(spec) not in names)
    return tuple(dict.fromkeys((*kept, *given)))


def _pinned(build: CondaBuild, name: str, bound: Bound) -> str:
    """Return a requirement for a package of the `host` environment in its version."""
    if name not in build.host:
        msg = f"`{name}` can't be pinned: the conda environments do not have it"
        raise BuildError(msg, hint="add it to `host` of [toolchain] conda")
    return f"{name} >={build.host[name]},<{_next(build.host[name], bound)}"


def _run_export(build: CondaBuild, kind: CondaKind) -> Iterator[str]:
    """Yield the requirement of what is compiled against a package."""
    bound = _output(build, kind).pin or _PINS.get(kind)
    if bound == "exact":
        yield _exact(build, kind)
    elif bound is not None:
        version = _version(build, kind)
        yield f"{_name(build, kind)} >={version},<{_next(version, bound)}"


def _next(version: str, bound: Bound) -> str:
    """Return the first version of which the parts that must not change are others."""
    numbers = version_numbers(re.split(r"[^\d.]", version)[0])
    release = (*numbers, 0, 0, 0)[: bound.count("x")]
    return f"{'.'.join(map(str, (*release[:-1], release[-1] + 1)))}.0a0"


def conda_version(version: str) -> str:
    """Return a version without its local part: the build string replaces `+cu130`."""
    try:
        return Version(version).public
    except InvalidVersion as error:
        msg = f"conda does not support the version `{version}`: {error}"
        raise BuildError(msg, hint="use a version such as 2.14.0 or 2.14.0.dev20261114") from error


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


def _brought(build: CondaBuild, kind: CondaKind) -> Iterator[str]:
    """Yield packages with libraries that the build needs, unless the file ignores them."""
    ignored = _output(build, kind).ignore_run_exports
    yield from (spec for spec in _found(build) if required_name(spec) not in ignored)


def _found(build: CondaBuild) -> Iterator[str]:
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


def _either(build: CondaBuild) -> Iterator[str]:
    """Yield constraints that exclude packages of the other kind, CPU or GPU."""
    names = names_of(build.name, build.outputs)
    ours, other = (names.gpu, names.cpu) if _is_gpu(build) else (names.cpu, names.gpu)
    yield f"{ours} =={_version(build, CondaKind.META)}"
    yield f"{other} <0.0a0"


def _exact(build: CondaBuild, kind: CondaKind, *any_: str) -> str:
    """Return a requirement for a package of the build; its build may differ in some words."""
    return f"{_name(build, kind)} =={_version(build, kind)} {_build_string(build, kind, *any_)}"


def _any_package(build: CondaBuild) -> str:
    """Return a requirement for the package of any Python."""
    return _exact(build, CondaKind.PACKAGE, "python", "hash")


def _any_linalg(build: CondaBuild) -> str:
    """Return a requirement for the plugin of the same core, with or without MAGMA."""
    return _exact(build, CondaKind.LINALG, "magma", "number")
