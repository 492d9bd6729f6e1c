"""Rules about what conda packages say about themselves to solvers."""

import re
from collections.abc import Iterator

from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.compute.registry import compute_platforms
from torchyard.model.match_spec import match_spec_fault
from torchyard.model.matrix import any_match
from torchyard.package.conda.index import INDEX, RUN_EXPORTS, conda_index, json_fields
from torchyard.package.conda.name import required_name
from torchyard.package.conda.table import load_conda_table
from torchyard.package.versions import glibc_of

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_VERSION = re.compile(r"(?:\d+!)?[\w.]+(?:\+[\w.]+)?", re.ASCII)
_BUILD = re.compile(r"[\w.+]+", re.ASCII)
_GLIBC = re.compile(r"__glibc >=(\d{1,4})\.(\d{1,4})")
_BY_NAME = ("weak", "strong")
"""The run exports with packages to require. Those of `noarch` may be bare, as Python's are."""


@rule("conda-index", Severity.ERROR, "solvers refuse the package, or all of the channel")
def conda_index_fields(subject: Subject) -> Iterator[Hit]:
    """A name, a version, a build string or a requirement is not what solvers can read.

    Names are lower case; versions and build strings have no `-`, which separates them in file
    names. A requirement is a name, versions and a build: `numpy >=2,<3`, `libblas * *openblas`.
    Some solvers skip a record that they can't read, others stop at it.

    Correct the recipe, and build the package again.
    """
    index = conda_index(subject.contents)
    if index is None:
        return
    fields = {"name": _NAME, "version": _VERSION, "build": _BUILD}
    for field, pattern in fields.items():
        text = str(getattr(index, field))
        if not pattern.fullmatch(text):
            yield Hit(f"the {field} `{text}` has characters that a {field} can't have", INDEX)
    exports = dict(_run_exports(subject))
    stated = {"depends": index.depends, "constrains": index.constrains, **exports}
    for field, specs in stated.items():
        for spec in specs:
            if fault := match_spec_fault(spec):
                where = RUN_EXPORTS if field in exports else INDEX
                yield Hit(
                    f"`{spec}` in `{field}` {fault}", where, "write it as NAME VERSIONS BUILD"
                )


def _run_exports(subject: Subject) -> Iterator[tuple[str, list[str]]]:
    for key, specs in json_fields(subject.contents, RUN_EXPORTS).items():
        if isinstance(specs, list):
            yield key, [spec for spec in specs if isinstance(spec, str)]


@rule("conda-run-exports", Severity.WARNING, "dependents break when the next version comes")
def conda_run_exports(subject: Subject) -> Iterator[Hit]:
    """A run export names a package without a version.

    What is compiled against the package gets its run exports as requirements. Without a version,
    solvers install it beside a library that is older than the headers, or beside one with another
    ABI.

    Write `pin_subpackage(name, upper_bound="x.x")`, or `exact=True`, as run export.
    """
    for key, specs in _run_exports(subject):
        for spec in specs if key in _BY_NAME else ():
            if spec.strip() == required_name(spec):
                yield Hit(f"`{spec}` in `{key}` has no version", RUN_EXPORTS, "pin its version")


@rule("conda-driver", Severity.WARNING, "it is installed beside any driver", own=Severity.ERROR)
def conda_driver(subject: Subject) -> Iterator[Hit]:
    """A conda package requires a GPU's driver of any version.

    `__cuda` without a version admits every driver, so solvers install a build for CUDA 13 on a
    machine whose driver runs CUDA 12 only; it fails when the GPU is first used.

    Require the driver's version: `__cuda >=13.0`.
    """
    index = conda_index(subject.contents)
    virtual = {platform.conda_virtual_package for platform in compute_platforms()} - {""}
    for spec in index.depends if index else ():
        if spec.strip() in virtual:
            yield Hit(f"`depends` has `{spec}` without a version", INDEX, "require its version")


@rule("conda-glibc", Severity.ERROR, "it is installed on systems that it does not load on")
def conda_glibc(subject: Subject) -> Iterator[Hit]:
    """A file needs a newer glibc than the package requires of the system.

    `__glibc >=2.17` lets solvers install the package on systems with glibc 2.17. A file with
    symbols of 2.34 does not load there. Packages that require no glibc are not checked.

    Compile with a `sysroot_linux-64` of the version that is required, or require a newer one.
    """
    index = conda_index(subject.contents)
    found = [_GLIBC.match(spec) for spec in (index.depends if index else ())]
    least = max(((int(f[1]), int(f[2])) for f in found if f), default=None)
    for name, file in subject.contents.files.items() if least else ():
        needed = glibc_of(need.version for need in file.binary.needs) if file.binary else None
        if least and needed and needed > least:
            what = f"needs glibc {needed[0]}.{needed[1]}, and `depends` has {least[0]}.{least[1]}"
            yield Hit(what, name, f"require __glibc >={needed[0]}.{needed[1]}")


@rule("conda-overdepending", Severity.WARNING, "users download packages that nothing needs")
def conda_overdepending(subject: Subject) -> Iterator[Hit]:
    """A conda package requires a library that none of its files is linked with.

    Run exports add such requirements for everything in the host environment. They make
    environments larger, and conflicts more likely. A library may be opened by name instead: then
    the requirement is right. torchyard's `conda.toml` lists which packages have which libraries;
    Requirements that choose an implementation are not reported: BLAS, `_openmp_mutex`, and those
    with a build string.

    Leave the requirement out: `ignore_run_exports` in a recipe, or in `[conda.outputs.NAME]`.
    """
    index = conda_index(subject.contents)
    binaries = [f.binary for f in subject.contents.files.values() if f.binary]
    if index is None or not binaries:
        return
    table = load_conda_table()
    needed = {library for binary in binaries for library in binary.needed}
    chosen = {required_name(spec) for row in table.blas.values() for spec in row.depends}
    for spec in index.depends:
        name = required_name(spec)
        rows = [row for row in table.libraries if row.package == name and row.pin != "cuda"]
        is_choice = name in chosen or name.startswith("_") or spec.count(" ") > 1
        if not rows or is_choice:
            continue
        if not any(any_match(library, row.sonames) for row in rows for library in needed):
            yield Hit(f"`depends` has `{spec}`, and no file is linked with it", INDEX)
