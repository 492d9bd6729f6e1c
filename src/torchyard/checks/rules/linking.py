"""Rules about how the libraries of a package find each other, and libraries outside of it."""

import posixpath
from collections.abc import Iterator

from torchyard.checks.loader.companions import siblings_of
from torchyard.checks.loader.resolve import (
    How,
    LibraryLink,
    Resolver,
    is_module,
    is_program,
    links_of,
    resolver_of,
)
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.subject import Subject
from torchyard.model.matrix import any_match
from torchyard.package.conda.table import load_conda_table
from torchyard.package.formats import is_split
from torchyard.package.policy import load_layouts

_OPENMP = (b"GOMP_parallel\0", b"__kmpc_fork_call\0")
"""Symbols that an OpenMP runtime defines: gcc's, and LLVM's or Intel's."""


@rule("linking-unresolved", Severity.ERROR, "what needs it can't be imported or started")
def unresolved(subject: Subject) -> Iterator[Hit]:
    """A library that a file needs cannot be found.

    The loader looks for each library that a file needs in the directories of the file's RUNPATH or
    RPATH, and then where the system has its own. It is found if it is in the package; in a required
    package that is known to bring it (NVIDIA's wheels, `torch`), that is checked together with this
    one, or whose folder the file searches; or if every system has it: glibc and the others of the
    manylinux lists (musl and zlib for a wheel with a musllinux tag), the GPU's driver, and what the
    policy adds under `system`. A library of the same name that is already loaded is accepted as
    well: one that the same program or extension module has loaded before, or that Python code has
    loaded: the package's own code, as torch does with `libtorch_global_deps.so`, or the import of a
    required `torch`. Of a conda package's dependencies, some are known to bring a library
    (torchyard's `conda.toml`). The files of all others are not known: unless they are checked
    together with it, they are assumed to bring the libraries that are searched for in `lib`. A
    libtorch zip whose name has `-without-deps-` leaves third-party libraries to the system.

    Importing the module, or starting the program, fails with "cannot open shared object file". The
    rest of the package may still work, if the module is optional. Of files that differ only in a
    number (`libdemo_ffmpeg6.so`, `libdemo_ffmpeg7.so`), the package's code takes the one that fits
    the system: it is a warning that they need a library of the system.

    Put the library into the package (`torchyard repair --bundle`), require the package that has it,
    or do not link to it.
    """
    for link, others, is_mild in _grouped(subject, How.MISSING):
        why = "nothing that the package requires brings it, and not every system has it"
        rows = siblings_of(subject).anywhere(link.library)
        if rows:
            names = sorted({f"`{row.distribution}` (in {row.folder})" for row in rows})
            why = f"{' and '.join(names)} would have it, but its rpath does not lead there"
        elif any_match(link.library, (g for globs in load_layouts().opens.values() for g in globs)):
            why = f"{why}; other libraries open it by name"
        yield Hit(
            f"needs `{link.library}`, which is not in {_searched(link)}: {why}"
            f"{failing(resolver_of(subject), link.process or link.file)}{others}",
            resolver_of(subject).names[link.file],
            "bundle it, require the package that has it, or do not link with it",
            is_mild,
        )


@rule("linking-undeclared", Severity.ERROR, "installing it would not install what is needed")
def undeclared(subject: Subject) -> Iterator[Hit]:
    """A library comes with another package, which this one does not require.

    The directories in the file lead to where another wheel puts the library, but no Requires-Dist
    names that wheel (for CUDA 13, an extra of `cuda-toolkit` does as well); or a library of a conda
    package is in one that torchyard's `conda.toml` lists, and `depends` does not name it. The
    package works only where the other one is installed by chance.

    Add it to the requirements of the package.
    """
    for link, others, _ in _grouped(subject, How.UNDECLARED):
        yield Hit(
            f"needs `{link.library}` of `{link.where}`, which the package does not require{others}",
            resolver_of(subject).names[link.file],
            f"require {link.where}",
        )


@rule("linking-environment", Severity.ERROR, "it works only with LD_LIBRARY_PATH, or by chance")
def linking_environment(subject: Subject) -> Iterator[Hit]:
    """A library is in the package, but not where the loader looks for it.

    The file has no directory in its RUNPATH or RPATH that leads to the library, and nothing that is
    certain to be loaded before brings it into the process. So it works only if LD_LIBRARY_PATH
    leads there, or if something else happens to be imported first. A plugin that needs an extension
    module is not reported: only that module opens it. In files that differ only in a number it is a
    warning: the code that chooses one may load what it needs before.

    Give the file an rpath that leads to the library, such as `$ORIGIN/lib`: `torchyard repair
    --rpath policy` does it.
    """
    for link, others, is_mild in _grouped(subject, How.ELSEWHERE):
        yield Hit(
            f"needs `{link.library}`, which is not in {_searched(link)} but at "
            f"`{link.where}`{others}",
            resolver_of(subject).names[link.file],
            "give it an rpath that leads there",
            is_mild,
        )


def _grouped(subject: Subject, how: How) -> Iterator[tuple[LibraryLink, str, bool]]:
    """Yield a link for each library and list of folders, a suffix, and whether code chooses."""
    groups: dict[tuple[str, str, tuple[str, ...]], dict[str, LibraryLink]] = {}
    for link in links_of(subject):
        if link.how is how:
            groups.setdefault((link.library, link.where, link.searched), {})[link.file] = link
    for group in groups.values():
        is_chosen = all(map(resolver_of(subject).is_alternative, group))
        yield next(iter(group.values())), and_others(len(group) - 1), is_chosen


def and_others(count: int) -> str:
    """Return a suffix that counts the further files with the same finding."""
    return f"; so do {count} others" if count > 1 else "; so does 1 other" if count else ""


def failing(resolver: Resolver, path: str) -> str:
    """Return the suffix about a module or program that fails if a file can't be loaded."""
    if is_program(path):
        return f"; starting `{path}` would fail"
    if is_module(path, resolver.binaries[path]):
        module = path.partition(".")[0].replace("/", ".")
        return f"; importing `{module}` would fail"
    return ""


def _searched(link: LibraryLink) -> str:
    where = ", ".join(f"`{folder}`" for folder in link.searched)
    where = where or "any folder, as no folder of its rpath exists"
    return f"{where} (when `{link.process}` loads it)" if link.process else where


@rule(
    "linking-orphan",
    Severity.NOTE,
    "unless it is opened by name, it is of no use",
    own=Severity.WARNING,
)
def orphan(subject: Subject) -> Iterator[Hit]:
    """A shared library is in the package, but nothing in the package needs or is known to open it.

    Either Python code or another library opens it by name, which a static check cannot see; or it
    was bundled by mistake, or for a file that no longer links to it. Then it only makes the package
    larger, and its own defects go unnoticed, as it is never loaded. Extension modules and programs
    are not reported, nor libraries that need others of the package: these are the project's own,
    for programs that link to them or open them. Some libraries that others open by name are listed
    in torchyard's `layouts.toml`. Packages without programs and extension modules are not checked.

    Look for its name in the sources. If nothing opens it, remove it.
    """
    if subject.contents.faults:
        return  # an unreadable file has unknown needs
    layouts = load_layouts()
    resolver = resolver_of(subject)
    if not any(is_program(path) or is_module(path, b) for path, b in resolver.binaries.items()):
        return
    needed = {library for binary in resolver.binaries.values() for library in binary.needed}
    opened = [*layouts.preloads, load_conda_table().linalg.library]
    for library in {*needed, *resolver.by_name}:
        opened += layouts.opened_by(library)
    for path, binary in resolver.binaries.items():
        name = posixpath.basename(path)
        if is_program(path) or is_module(path, binary) or needed & {name, binary.soname}:
            continue
        if resolver.by_name.keys().isdisjoint(binary.needed) and not any_match(name, opened):
            yield Hit(
                "nothing in the package needs this library or is known to open it",
                resolver.names[path],
                "remove it, unless something opens it by name",
            )


@rule("linking-opened", Severity.WARNING, "a feature fails as soon as it is used")
def opened(subject: Subject) -> Iterator[Hit]:
    """A library is in the package without those that it opens while it runs.

    Some libraries open others by name when they are first needed: cuDNN its parts, NVRTC its
    built-in functions, torch its linear algebra for CUDA. No rpath or list of needed libraries
    shows it; torchyard checks those listed in its `layouts.toml`. Importing works, and the first
    convolution fails. A conda package's dependencies are assumed to bring them.

    Bundle them, too, or require the wheel that has all of them.
    """
    layouts = load_layouts()
    resolver = resolver_of(subject)
    if is_split(subject.contents) and siblings_of(subject).trusts_dependencies:
        return
    for name, path in resolver.by_name.items():
        for glob in layouts.opened_by(name):
            if not any(any_match(other, [glob]) for other in resolver.by_name):
                what = f"opens `{glob}` while it runs, which the package lacks"
                yield Hit(what, resolver.names[path], "bundle what it opens")


@rule("linking-openmp", Severity.ERROR, "two OpenMP runtimes in one process: slow, or it hangs")
def openmp(subject: Subject) -> Iterator[Hit]:
    """The package brings more than one OpenMP runtime into a process.

    Each has its own threads: they compete for the processors, settings reach only one of them, and
    with fork or nested regions the process hangs. It happens if two runtimes are in the package; if
    libraries need them under different names (`libgomp.so.1` and the `libgomp-a34b3233.so.1` that
    auditwheel makes of it); or if one is linked statically into a library that exports its
    functions.

    Let all libraries use one runtime, under one name.
    """
    globs = load_layouts().openmp
    users: dict[str, str] = {}
    resolver = resolver_of(subject)
    for path, binary in resolver.binaries.items():
        name = posixpath.basename(path)
        for runtime in (name, *binary.needed):
            if any_match(runtime, globs):
                users.setdefault(_loaded_as(resolver, runtime), path)
        if not any_match(name, globs) and _defines_openmp(binary.exports):
            users.setdefault(f"the one inside {name}", path)
    if len(users) > 1:
        uses = ", ".join(f"`{name}` ({path})" for name, path in sorted(users.items()))
        yield Hit(f"there are {len(users)} OpenMP runtimes: {uses}", "", "let all use one of them")


def _defines_openmp(exports: bytes) -> bool:
    return exports.startswith(_OPENMP) or any(b"\0" + name in exports for name in _OPENMP)


def _loaded_as(resolver: Resolver, library: str) -> str:
    """Return the name of a library in a process: its soname, if it has one."""
    path = resolver.by_name.get(library)
    return (resolver.binaries[path].soname if path else "") or library
