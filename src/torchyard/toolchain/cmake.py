"""Read a configured build through CMake's File API, and change its Python."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from torchyard.errors import BuildError
from torchyard.model.values import UNDECODABLE

_T = TypeVar("_T")
_API = ".cmake/api/v1"
_QUERIES = ("codemodel-v2", "cache-v2")
_GENERATED = re.compile(r",code=\[?([\w,]+)\]?|--(?:offload-arch|amdgpu-target)=(\w+(?::\w+[+-])*)")
"""Compiler options that select device architectures: nvcc's and clang's."""
_LIBRARY_FOLDERS = ("bin", "cmake", "include", "lib", "lib64", "share", "test")
"""The folders of an installation of libraries."""


class _Reply(msgspec.Struct):
    """A part of a reply; most fields are ignored."""


class _Named(_Reply):
    id: str = ""


class _Include(_Reply):
    path: str


class Fragment(_Reply):
    """A part of a command line; only parts of link commands have a role."""

    fragment: str = ""
    role: str = ""


class _Group(_Reply):
    language: str = ""
    includes: tuple[_Include, ...] = ()
    fragments: tuple[Fragment, ...] = msgspec.field(name="compileCommandFragments", default=())


class Link(_Reply):
    """How a target is linked."""

    fragments: tuple[Fragment, ...] = msgspec.field(name="commandFragments", default=())


class _Artifact(_Reply):
    path: str


class Target(_Reply):
    """A target of a project, with the needed fields."""

    id: str
    name: str
    type: str
    dependencies: tuple[_Named, ...] = ()
    groups: tuple[_Group, ...] = msgspec.field(name="compileGroups", default=())
    artifacts: tuple[_Artifact, ...] = ()
    link: Link = msgspec.field(default_factory=Link)
    install: msgspec.Raw = msgspec.Raw()

    @property
    def includes_python(self) -> bool:
        return any(
            Path(include.path, "Python.h").exists()
            for group in self.groups
            for include in group.includes
        )


class _Reference(_Reply):
    file: str = msgspec.field(name="jsonFile")


class _Directory(_Reply):
    build: str
    targets: tuple[int, ...] = msgspec.field(name="targetIndexes", default=())
    children: tuple[int, ...] = msgspec.field(name="childIndexes", default=())


class _Configuration(_Reply):
    directories: tuple[_Directory, ...]
    targets: tuple[_Reference, ...]

    def inside_out(self, number: int = 0) -> Iterator[_Directory]:
        """Yield the directories in a directory, innermost first, then itself."""
        for child in self.directories[number].children:
            yield from self.inside_out(child)
        yield self.directories[number]


class _Paths(_Reply):
    source: str = ""


class _Model(_Reply):
    configurations: tuple[_Configuration, ...]
    paths: _Paths = msgspec.field(default_factory=_Paths)


class _Entry(_Reply):
    name: str
    value: str


class _Cache(_Reply):
    entries: tuple[_Entry, ...]


class _Index(_Reply):
    reply: dict[str, msgspec.Raw]


def request_file_api(build: Path) -> None:
    """Write File API queries for the first configuration."""
    if (build / "CMakeCache.txt").exists():
        msg = f"the source contains `{build}/CMakeCache.txt` of an earlier configuration"
        hint = f"remove `{build}` from the source: it has paths and settings of another build"
        raise BuildError(msg, hint=hint)
    folder = build / _API / "query"
    folder.mkdir(parents=True, exist_ok=True)
    for query in _QUERIES:
        (folder / query).touch()


def _decoded(reply: Path, kind: type[_T]) -> _T:
    try:
        if reply.is_file():  # a pipe would never end
            return msgspec.json.decode(reply.read_bytes(), type=kind)
        why = "it is not a file"
    except UNDECODABLE as error:
        why = str(error)
    msg = f"`{reply}` is not a reply of CMake: {why}"
    raise BuildError(msg, hint="configure the build again")


def has_replies(build: Path) -> bool:
    """Return whether CMake has replied to queries about a build."""
    return any((build / _API / "reply").glob("index-*.json"))


class Configured:
    """A configured build directory."""

    def __init__(self, build: Path) -> None:
        self.build = build
        self._replies = build / _API / "reply"
        indexes = sorted(self._replies.glob("index-*.json"))
        if not indexes:
            msg = f"CMake has not configured `{build}`: it has no reply"
            hint = "the project's backend must run CMake in that directory: see the log"
            raise BuildError(msg, hint=hint)
        self._index = _decoded(indexes[-1], _Index)

    def _answer(self, query: str, kind: type[_T]) -> _T:
        if query not in self._index.reply:
            msg = f"`{self.build}` was configured without the query `{query}`"
            raise BuildError(msg, hint="did another tool than the recipe configure it?")
        return self._read(msgspec.json.decode(self._index.reply[query], type=_Reference), kind)

    def _read(self, reference: _Reference, kind: type[_T]) -> _T:
        return _decoded(self._replies / Path(reference.file).name, kind)

    @cached_property
    def cache(self) -> dict[str, str]:
        """The entries of the cache."""
        entries = self._answer("cache-v2", _Cache).entries
        return {entry.name: entry.value for entry in entries}

    @cached_property
    def _model(self) -> _Model:
        return self._answer("codemodel-v2", _Model)

    @property
    def _configuration(self) -> _Configuration:
        return self._model.configurations[0]

    @cached_property
    def targets(self) -> dict[str, Target]:
        """The targets by id, in CMake's order."""
        read = (self._read(reference, Target) for reference in self._configuration.targets)
        return {target.id: target for target in read}

    @cached_property
    def per_python(self) -> frozenset[str]:
        """The targets compiled against Python's headers, and their dependents."""
        bound = {target.id for target in self.targets.values() if target.includes_python}
        while True:
            more = {
                target.id
                for target in self.targets.values()
                if target.id not in bound and any(d.id in bound for d in target.dependencies)
            }
            if not more:
                return frozenset(bound)
            bound |= more

    def core_targets(self) -> list[str]:
        """Return the targets to build without Python: installed ones and dependencies."""
        wanted = {t.id for t in self.targets.values() if t.install or t.id in self.per_python}
        waiting = list(wanted)
        while waiting:
            needed = {d.id for d in self.targets[waiting.pop()].dependencies} - wanted
            wanted |= needed
            waiting += needed
        core = (self.targets[i] for i in wanted - self.per_python)
        return sorted(target.name for target in core if target.type != "INTERFACE_LIBRARY")

    def artifact(self, name: str) -> Path:
        """Return the output file of a target."""
        for target in self.targets.values():
            if target.name == name and target.artifacts:
                return self.build / target.artifacts[0].path
        msg = f"the project has no target `{name}` with an output file"
        raise BuildError(msg, hint="`linalg` in [build] names a library of the project")

    def core_directories(self) -> list[str]:
        """Return the build directories whose installation does not depend on Python.

        Outer ones come last: their install steps change files from inner ones.
        """
        bound = {
            number
            for number, target in enumerate(self.targets.values())
            if target.install and target.id in self.per_python
        }
        return [d.build for d in self._configuration.inside_out() if bound.isdisjoint(d.targets)]

    def source_includes(self) -> dict[str, list[str]]:
        """Return each target's include directories in the source, relative to it."""
        source = f"{self._model.paths.source}/"
        return {
            target.name: [
                include.path.removeprefix(source)
                for group in target.groups
                for include in group.includes
                if include.path.startswith(source)
            ]
            for target in self.targets.values()
        }

    def linked(self) -> list[str]:
        """Return the libraries of the link lines, as a path or `-lname`."""
        parts = (part for target in self.targets.values() for part in target.link.fragments)
        return sorted({part.fragment for part in parts if part.role == "libraries"})

    def device_code(self) -> list[str]:
        """Return the device codes of the compile lines: `sm_90`, `compute_90`, `gfx90a`."""
        lines = " ".join(self._options("CUDA", "HIP") or self._scripts_of_find_hip())
        found = _GENERATED.finditer(lines)
        return sorted({word for match in found for word in (match[1] or match[2]).split(",")})

    def _scripts_of_find_hip(self) -> Iterator[str]:
        """Yield the scripts that compile for FindHIP, as PyTorch does: CMake sees no language."""
        return (
            path.read_text(encoding="utf-8") for path in self.build.rglob("*_generated_*.o.cmake")
        )

    def definitions(self, name: str) -> set[str]:
        """Return the values of a macro on the compile lines of C++."""
        return set(re.findall(rf"-D{name}=(\w+)", " ".join(self._options("CXX"))))

    def _options(self, *languages: str) -> set[str]:
        """Return the options on the compile lines of these languages."""
        groups = (group for target in self.targets.values() for group in target.groups)
        used = (group for group in groups if group.language in languages)
        return {fragment.fragment for group in used for fragment in group.fragments}


def install_script(configured: Configured, to: str) -> str:
    """Return a script for `cmake -P` that installs the directories without Python.

    It does the same as CMake's target `install/local`, for several directories. Other folders than
    those of libraries, such as stubs of torch 2.15, belong to the Python package, and are removed.
    """
    lines = [f'set(CMAKE_INSTALL_PREFIX "{to}")', "set(CMAKE_INSTALL_LOCAL_ONLY TRUE)"]
    for directory in configured.core_directories():
        lines += [f'include("{configured.build / directory}/cmake_install.cmake")']
    lines += [
        f'file(GLOB others "{to}/*")',
        f'list(FILTER others EXCLUDE REGEX "/({"|".join(_LIBRARY_FOLDERS)})$")',
        "foreach(other IN LISTS others)",
        '  file(REMOVE_RECURSE "${other}")',
        "endforeach()",
    ]
    return "\n".join([*lines, ""])


def cache_script(entries: Mapping[str, str]) -> str:
    """Return a CMake script that sets cache entries; a name may have a type: `NAME:BOOL`."""
    lines = []
    for key, value in entries.items():
        name, _, kind = key.partition(":")
        quoted = re.sub(r'([\\"$])', r"\\\1", value)
        lines.append(f'set({name} "{quoted}" CACHE {kind or "STRING"} "")')
    return "\n".join([*lines, ""])


PYTHONS = ("Python", "Python3")
"""The prefixes of CMake's two modules that find Python; pybind11 uses the older `PYTHON_`."""


def repoint(build: Path, executable: str, include: str, root: str) -> list[str]:
    """Return the command that replaces the Python in CMake's cache by another one."""
    words = ["cmake"]
    for glob in ("Python*", "_Python*", "PYTHON_*"):
        words += ["-U", glob]
    return [*words, *python_definitions(executable, include, root), str(build)]


def python_definitions(executable: str, include: str, root: str) -> list[str]:
    """Return the definitions that describe a Python to CMake, so that it does not search."""
    return [
        f"-D{prefix}_{name}={value}"
        for prefix in PYTHONS
        for name, value in (
            ("EXECUTABLE", executable),
            ("INCLUDE_DIR", include),
            ("ROOT_DIR", root),
        )
    ]
