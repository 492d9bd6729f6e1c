"""Resolve the libraries that a package needs to files, like the dynamic loader.

Every program of a package is simulated as a process, and so is every extension module and every
library that is opened by name, after the libraries that Python code loads before it. For each
needed library, the loader takes

- one of that name that is loaded already, as is an extension module that a plugin needs,
- a file in the directories of the file that needs it: its RUNPATH, or, without one, its RPATH
   and those of the files that loaded it,
- what the system has.
"""

import posixpath
import re
from collections import Counter, deque
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from torchyard.checks.loader.companions import Siblings, siblings_of
from torchyard.checks.subject import Subject
from torchyard.model.matrix import any_match
from torchyard.package.contents import Binary
from torchyard.package.formats import installed_paths
from torchyard.package.libtorch.format import is_libtorch
from torchyard.package.libtorch.write import lacks_deps
from torchyard.package.policy import load_layouts
from torchyard.package.wheel.format import PREFIX

_MODULE = re.compile(r"\.(?:abi3|cpython-[\w-]+)\.so$")
_ORIGIN = re.compile(r"\$ORIGIN\b|\$\{ORIGIN\}")
_LIB = re.compile(r"^\.\./\.\.(?=$|/(?!\.\.))")
"""The environment's `lib`, relative to site-packages; its normal form is `PREFIX/lib`."""

_LINKS = 8
"""Maximum length of a chain of links."""


class How(StrEnum):
    """How a library is found, or why not."""

    PACKAGE = "package"
    LOADED = "loaded"
    SIBLING = "sibling"
    SYSTEM = "system"
    UNDECLARED = "undeclared"
    """In a package that is not required."""
    ELSEWHERE = "elsewhere"
    """In the package, in a folder that is not searched."""
    MISSING = "missing"


NOT_FOUND = frozenset((How.UNDECLARED, How.ELSEWHERE, How.MISSING))
_MISSING = How.MISSING, ""


class LibraryLink(NamedTuple):
    """A library that a file needs, and how the loader resolves it.

    `where` is a path, or names of packages; `searched` are the folders that the loader searches. If
    these depend on the files that loaded this one, `process` is the file that started the
    process.
    """

    file: str
    library: str
    how: How
    where: str
    searched: tuple[str, ...]
    process: str


class LoadedFile(NamedTuple):
    """A file in a process, and the folders of its RPATH, followed by those of its loaders."""

    path: str
    inherited: tuple[str, ...]


def without_numbers(path: str) -> str:
    """Return the common name of alternatives such as libdemo_cuda118.so and libdemo_cuda130.so."""
    return re.sub(r"\d+", "", path)


def is_program(path: str) -> bool:
    return ".so" not in posixpath.basename(path)


def is_module(path: str, binary: Binary) -> bool:
    """Return whether Python can import a file."""
    name = posixpath.basename(path)
    named = _MODULE.search(name) or (".so" in name and not name.startswith("lib"))
    return bool(named) or b"PyInit_" in binary.exports


def folders(path: str, directories: str) -> tuple[str, ...]:
    """Return the folders of a list of directories, for a file that is installed at a path.

    Directories without `$ORIGIN` at the start can't be in a package, and are left out.
    """
    here = posixpath.dirname(path) or "."
    found = (
        _LIB.sub(f"{PREFIX}/lib", posixpath.normpath(here + entry[match.end() :]))
        for entry in directories.split(":")
        if (match := _ORIGIN.match(entry))
    )
    return tuple(dict.fromkeys(found))


class Resolver:
    """Simulates the dynamic loader for one package."""

    def __init__(self, subject: Subject, siblings: Siblings) -> None:
        layouts = load_layouts()
        self.siblings = siblings
        is_musl = any(tag.startswith("musllinux_") for tag in subject.expected.platforms)
        system = layouts.musl if is_musl else layouts.system
        self.system = (*system, *layouts.drivers, *subject.policy.system)
        self.lacks_deps = is_libtorch(subject.contents) and lacks_deps(subject.contents.file_name)
        self.names = installed_paths(subject.contents)
        self.files = subject.contents.files
        self.binaries: dict[str, Binary] = {}
        self.by_name: dict[str, str] = {}
        for path, name in self.names.items():
            binary = self.files[name].binary
            if binary is not None and binary.format == "elf" and binary.dynamic:
                self.binaries[path] = binary
                self.by_name[posixpath.basename(path)] = path
        self._runpaths = {path: folders(path, b.runpath) for path, b in self.binaries.items()}
        self._rpaths = {
            path: () if b.runpath else folders(path, b.rpath) for path, b in self.binaries.items()
        }
        self._answers: dict[tuple[tuple[str, ...], str], tuple[How, str]] = {}
        self._alternatives = Counter(map(without_numbers, self.binaries))
        preloads = (n for n in self.by_name if any_match(n, layouts.preloads))
        self._preloads = [self.by_name[name] for name in sorted(preloads)]

    def is_alternative(self, path: str) -> bool:
        """Return whether another file differs only in a number, so that code chooses one."""
        return self._alternatives[without_numbers(path)] > 1

    def links(self) -> Iterator[LibraryLink]:
        """Yield how each needed library is resolved, by process."""
        needed = {library for binary in self.binaries.values() for library in binary.needed}
        roots = [path for path in self.binaries if posixpath.basename(path) not in needed]
        others = [path for path in self.binaries if posixpath.basename(path) in needed]
        seen: set[str] = set()
        for root in (*roots, *others):
            if root not in seen:
                for link in self._process(root):
                    seen.add(link.file)
                    yield link

    def _process(self, root: str) -> Iterator[LibraryLink]:
        names: set[str] = set()
        before = [] if is_program(root) else [path for path in self._preloads if path != root]
        for start in (*before, root):
            waiting = deque([LoadedFile(start, self._rpaths[start])])
            names.update(self._names_of(start))
            while waiting:
                user = waiting.popleft()
                for library in self.binaries[user.path].needed:
                    link = self._link(user, library, names, start)
                    if link.how not in NOT_FOUND:
                        names.add(library)
                    if link.how is How.PACKAGE and link.where in self.binaries:
                        names.update(self._names_of(link.where))
                        inherited = dict.fromkeys((*self._rpaths[link.where], *user.inherited))
                        waiting.append(LoadedFile(link.where, tuple(inherited)))
                    yield link

    def _names_of(self, path: str) -> tuple[str, ...]:
        return posixpath.basename(path), self.binaries[path].soname

    def _link(self, user: LoadedFile, library: str, names: set[str], root: str) -> LibraryLink:
        runpath = self.binaries[user.path].runpath
        searched = self._runpaths[user.path] if runpath else user.inherited
        process = "" if runpath or root == user.path else root
        if library in names:
            return LibraryLink(user.path, library, How.LOADED, "", searched, process)
        key = searched, library
        if key not in self._answers:
            self._answers[key] = self._find(searched, library)
        how, where = self._answers[key]
        if how is How.ELSEWHERE and self._is_plugin(user.path, where):
            how, where = How.LOADED, ""
        return LibraryLink(user.path, library, how, where, searched, process)

    def _is_plugin(self, path: str, owner: str) -> bool:
        """Return whether only an extension module, which is then loaded, opens a library."""
        is_used_alone = is_program(path) or is_module(path, self.binaries[path])
        return not is_used_alone and is_module(owner, self.binaries[owner])

    def _find(self, searched: tuple[str, ...], library: str) -> tuple[How, str]:
        brought = []
        for folder in searched:
            path = self._followed(posixpath.normpath(f"{folder}/{library}"))
            if path in self.names:
                return How.PACKAGE, path
            brought.append(self.siblings.at(*posixpath.split(path)))
        system = any_match(library, self.system)
        brought.append(self.siblings.imported(library))
        for found in filter(None, brought):
            if found.declared and not system:
                return How.SIBLING, " or ".join(found.distributions)
        if system:
            return How.SYSTEM, ""
        if library in self.by_name:
            return How.ELSEWHERE, self.by_name[library]
        undeclared = next(filter(None, brought), None)
        if undeclared:
            return How.UNDECLARED, " or ".join(undeclared.distributions)
        return (How.SYSTEM, "") if self.lacks_deps else _MISSING

    def _followed(self, path: str) -> str:
        """Return the target of a link, which may be in another package."""
        for _ in range(_LINKS):
            name = self.names.get(path)
            link = self.files[name].link if name else ""
            if not link:
                break
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
        return path


@lru_cache(maxsize=1)
def resolver_of(subject: Subject) -> Resolver:
    return Resolver(subject, siblings_of(subject))


@lru_cache(maxsize=1)
def links_of(subject: Subject) -> tuple[LibraryLink, ...]:
    """Return the resolver of a package's libraries, computed once for all rules."""
    return tuple(resolver_of(subject).links())


def outside_origins(subject: Subject) -> dict[str, str]:
    """Return the origin of each needed library outside of the package.

    It is `system`, a project, or empty if unknown.
    """
    origins: dict[str, str] = {}
    for link in links_of(subject):
        if link.how in (How.MISSING, How.UNDECLARED):
            origins[link.library] = ""
        elif link.how is How.SYSTEM:
            origins.setdefault(link.library, "system")
        elif link.how is How.SIBLING:
            origins.setdefault(link.library, link.where)
    return origins
