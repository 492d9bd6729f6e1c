"""Facts about a Python project from its directory."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.parser import HeaderParser
from itertools import chain
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from torchyard.model.identifier import PROJECT_NAME
from torchyard.model.matrix import any_match
from torchyard.model.requirement import is_plain_requirement, parse_requirement
from torchyard.model.toml import parse_toml
from torchyard.model.values import Value
from torchyard.toolchain.python_project import PYPROJECT
from torchyard.toolchain.reading.cmake_code import read_cmake
from torchyard.toolchain.reading.python_code import first_imports, read_python
from torchyard.toolchain.reading.source_text import (
    CodeReading,
    Download,
    DownloadKind,
    SourceLine,
    SourceTexts,
    Switch,
    empty_folders,
    line_at,
    reading_table,
)

_TORCH = "torch"
_SETUP = "setup.py"
_SETUPTOOLS = "setuptools"
_METADATA = "PKG-INFO"
_DECLARING = (PYPROJECT, _SETUP, "setup.cfg", "requirements.txt")
_CPP_EXTENSION = "cpp_extension"
_CPP_CLASS = "CppExtension"
_MOST_FILES = 500
_MOST_BUILD_FILES = 40
_MOST_MODULES = 20
_MOST_BYTES = 4 << 20
_VERSION = re.compile(r"""\b(?:__version__|version)\s*=\s*['"](\d[\w.!+]*)['"]""")
_VERSION_FILES = ("version.py", "_version.py", "__about__.py", "__init__.py")
_TARGET = re.compile(r"TORCH_TARGET_VERSION\W{1,9}0x([0-9a-f]{2})([0-9a-f]{2})", re.IGNORECASE)
_SUBMODULE = re.compile(r"path[ \t]*=[ \t]*(\S+)\s+url[ \t]*=[ \t]*(\S+)")
_HERE = re.compile(r"^(?:file://)?\$\{CMAKE_CURRENT_(?:SOURCE|LIST)_DIR\}/")
_BASES = ("", "src/")
_LIBRARIES = (".so", ".dll", ".dylib", ".pyd")
_REPOSITORY = re.compile(r"repo|source|code|github|home|url", re.IGNORECASE)
_FORGE = re.compile(
    r"https?://(?:www\.)?(?:github\.com|gitlab\.[\w.]+|bitbucket\.org)/[^\s/]+/[^\s/#]+"
)


class ProjectReading(Value, kw_only=True):
    """Facts about a project and its build from the source tree, each with file and line.

    Unknown values are None or empty.
    """

    name: SourceLine | None = None
    version: SourceLine | None = None
    requires_python: SourceLine | None = None
    repository: str = ""
    """The address of its repository, from its metadata."""
    backend: SourceLine | None = None
    """The usual name of its build backend; None if it is not a Python project."""
    compiles: SourceLine | None = None
    """The evidence that it is compiled; None for pure Python."""
    brings: str = ""
    """A compiled library in the source."""
    torch: SourceLine | None = None
    """The evidence that it is compiled against torch."""
    cuda: SourceLine | None = None
    """The evidence that it has code for CUDA."""
    cuda_only: bool = False
    """Whether all modules of setup.py are for CUDA, or CMake's project() has this language."""
    torch_ranges: tuple[SourceLine, ...] = ()
    """The torch versions that its metadata and code require, as `>=2.6`."""
    switches: tuple[Switch, ...] = ()
    downloads: tuple[Download, ...] = ()
    build_requires: tuple[SourceLine, ...] = ()
    """Requirements of its build's imports and hooks that [build-system] does not name."""
    undeclared: tuple[SourceLine, ...] = ()
    """Modules that it imports when used, but does not require in any file."""

    @property
    def is_extension(self) -> bool:
        """Whether it is compiled against torch, but is not torch itself."""
        is_torch = self.name is not None and self.name.text == _TORCH
        return self.compiles is not None and self.torch is not None and not is_torch


def read_project(folder: Path) -> ProjectReading:
    """Return the facts in a directory."""
    return _Project(SourceTexts(folder)).reading()


class _Project:
    """A source tree, and the facts in its files."""

    def __init__(self, texts: SourceTexts) -> None:
        self.texts = texts
        self.pyproject = texts.read(PYPROJECT)
        table: Mapping[str, object] = {}
        with suppress(ValueError):
            table = parse_toml(self.pyproject)
        self.tool = _table(table, "tool")
        self.project, self.system = _table(table, "project"), _table(table, "build-system")
        self.hooks = str(self.system.get("build-backend", ""))
        self.build_system = _list(self.system, "requires")
        self.metadata = HeaderParser().parsestr(texts.read(_METADATA))
        self.requires = [str(text) for text in self.metadata.get_all("Requires-Dist", [])]
        self.python = list(self._build_code())
        self.imports = [line for code in self.python for line in code.imports]
        files = texts.named("CMakeLists.txt", ".cmake")[:_MOST_FILES]
        self.codes = [*self.python, *(read_cmake(path, texts.read(path)) for path in files)]
        name = self._stated("name", "name")
        self.name = name if name and PROJECT_NAME.fullmatch(name.text) else None
        self.module = re.sub(r"[-.]", "_", self.name.text) if self.name else ""

    def reading(self) -> ProjectReading:
        table, backend, cuda = reading_table(), self._backend(), self._cuda()
        names = set(chain.from_iterable(code.names for code in self.python))
        only = not names.isdisjoint(table.cuda_classes) and names.isdisjoint(table.cpu_classes)
        only |= cuda is not None and cuda.text == "project" and _CPP_CLASS not in names
        return ProjectReading(
            name=self.name,
            version=self._version(),
            requires_python=self._stated("requires-python", "python_requires"),
            repository=self._repository(),
            backend=backend,
            compiles=self._compiles(backend),
            brings="".join(self.texts.named(*_LIBRARIES)[:1]),
            torch=self._torch(),
            cuda=cuda,
            cuda_only=only,
            torch_ranges=tuple({line.text: line for line in self._torch_ranges()}.values()),
            switches=tuple(self._switches()),
            downloads=tuple(self._downloads()),
            build_requires=tuple(self._build_requires()),
            undeclared=tuple(self._undeclared()),
        )

    def _build_code(self) -> Iterator[CodeReading]:
        """Yield setup.py, the project's own backend, and their imports."""
        roots = ["", *(f"{path}/" for path in _list(self.system, "backend-path") if path != ".")]
        waiting = [_SETUP, *_files_of(self.hooks.partition(":")[0], roots)]
        left = dict.fromkeys(self.texts.named(".py"))
        last = len(left) - _MOST_BUILD_FILES
        while waiting and len(left) > last:
            if (path := waiting.pop(0)) in left:
                left.pop(path)
                yield (code := read_python(path, self.texts.read(path)))
                waiting += chain.from_iterable(_files_of(line.text, roots) for line in code.imports)

    def _backend(self) -> SourceLine | None:
        table = reading_table().backends
        name = table.get(re.split("[.:]", self.hooks)[0], "its own backend")
        if self.hooks and name != _SETUPTOOLS:
            return self._line(name, "build-backend")
        for found in self.imports:  # setup.py imports scikit-build instead
            name = table.get(found.text.partition(".")[0], _SETUPTOOLS)
            if name != _SETUPTOOLS:
                return SourceLine(name, found.file, found.line)
        if _SETUP in self.texts.paths:
            return SourceLine(_SETUPTOOLS, _SETUP)
        return SourceLine(_SETUPTOOLS, PYPROJECT) if self.system or self.project else None

    def _compiles(self, backend: SourceLine | None) -> SourceLine | None:
        if backend is not None and backend.text in reading_table().compiling:
            return backend
        if "ext-modules" in _table(self.tool, _SETUPTOOLS):
            return self._line("ext-modules", "ext-modules")
        return next((code.compiles for code in self.python if code.compiles), None)

    def _torch(self) -> SourceLine | None:
        for code in self.codes:
            if line := code.names.get(_CPP_EXTENSION):
                return SourceLine(f"torch.utils.{_CPP_EXTENSION}", code.file, line)
            if code.torch:
                return SourceLine("find_package(Torch)", code.file, code.torch.line)
        for text in self.build_system:
            if _required(text) == _TORCH:
                return self._line(text, text)
        return next((line for line in self.imports if line.text.partition(".")[0] == _TORCH), None)

    def _cuda(self) -> SourceLine | None:
        for code in self.codes:
            for name in code.names.keys() & reading_table().cuda_classes:
                return SourceLine(name, code.file, code.names[name])
            if code.cuda:
                return code.cuda
        return next((SourceLine(path, path) for path in self.texts.named(".cu")), None)

    def _version(self) -> SourceLine | None:
        """Return the version in pyproject.toml or setup.py, or else in the package itself."""
        found = self._stated("version", "version")
        files = [
            _SETUP,
            *(f"{base}{self.module}/{name}" for base in _BASES for name in _VERSION_FILES),
        ]
        for file in files if found is None else ():
            text = self.texts.read(file)
            if match := _VERSION.search(text):
                return SourceLine(match[1], file, line_at(text, match.start()))
        return found

    def _repository(self) -> str:
        """Return the address of a code host in the metadata, preferably one called repository."""
        found = [(str(key), str(url)) for key, url in _table(self.project, "urls").items()]
        for line in self.metadata.get_all("Project-URL", []):
            key, _, url = str(line).partition(",")
            found.append((key, url.strip()))
        found.append(("homepage", str(self.metadata.get("Home-page", ""))))
        found += [
            ("url", line.text) for code in self.python for line in code.keywords.get("url", ())
        ]
        found.sort(key=lambda item: not _REPOSITORY.search(item[0]))
        return next((match[0] for _, url in found if (match := _FORGE.match(url))), "")

    def _torch_ranges(self) -> Iterator[SourceLine]:
        """Yield the torch versions required by metadata, setup.py, CMake and the stable ABI."""
        lines = [SourceLine(text, _METADATA) for text in self.requires]
        named = (*self.build_system, *_list(self.project, "dependencies"))
        lines += (self._line(text, text) for text in named)
        for code in self.python:
            lines += (*code.hook, *code.keywords.get("install_requires", ()))
        for line in lines:
            with suppress(InvalidRequirement):
                need = parse_requirement(line.text)
                if need.name == _TORCH and need.specifier and need.marker is None:
                    yield SourceLine(str(need.specifier), line.file, line.line)
        for found in (code.torch for code in self.codes):
            if found and found.text:
                yield SourceLine(f">={found.text}", found.file, found.line)
        for file in (_SETUP, *self.texts.named("CMakeLists.txt")[:_MOST_FILES]):
            text = self.texts.read(file)
            if match := _TARGET.search(text):
                version = ".".join(str(int(digits, 16)) for digits in match.groups())
                yield SourceLine(f">={version}", file, line_at(text, match.start()))

    def _switches(self) -> Iterator[Switch]:
        """Yield each switch once: where its default is known, else where it is first read."""
        found: dict[str, Switch] = {}
        for switch in chain.from_iterable(code.switches for code in self.codes):
            first = found.setdefault(switch.text, switch)
            if (switch.default or switch.expects) and not (first.default or first.expects):
                found[switch.text] = switch
        for name, switch in found.items():
            if not any_match(name, reading_table().ordinary):
                yield switch

    def _downloads(self) -> Iterator[Download]:
        found = list(chain.from_iterable(code.downloads for code in self.codes))
        vendored = {download.text for download in found if self._is_vendored(download)}
        yield from (download for download in found if download.text not in vendored)
        modules = self.texts.read(".gitmodules")
        declared = {match[1]: match for match in _SUBMODULE.finditer(modules)}
        for path in empty_folders(self.texts.root, tuple(declared)):
            line, kind = line_at(modules, declared[path].start()), DownloadKind.SUBMODULE
            yield Download(path, ".gitmodules", line, kind=kind, url=declared[path][2])
        if "Cargo.toml" in self.texts.paths and not (self.texts.root / "vendor").is_dir():
            yield Download("crates", "Cargo.toml", kind=DownloadKind.CARGO)

    def _is_vendored(self, download: Download) -> bool:
        """Return whether a download is a file of the source itself."""
        path = _HERE.sub("", download.url)
        folder = self.texts.root / Path(download.file).parent
        return path != download.url and (folder / path).is_file()

    def _build_requires(self) -> Iterator[SourceLine]:
        """Yield requirements of the build's imports and of its own backend."""
        table = reading_table()
        modules = {path.partition("/")[0].removesuffix(".py") for path in self.texts.paths}
        modules |= {Path(code.file).stem for code in self.python} | table.present
        lines = [line for code in self.python for line in code.hook]
        lines += (line for code in self.python for line in code.keywords.get("setup_requires", ()))
        for found in chain.from_iterable(code.needed for code in self.python):
            module = found.text.partition(".")[0]
            if module not in modules and not module.startswith(self.module or "."):
                text = table.requirements.get(module, module.replace("_", "-"))
                lines.append(SourceLine(text, found.file, found.line))
        named = {_TORCH, "", *map(_required, self.build_system)}
        limits = set(table.requirements.values())
        for line in lines:
            key = line.text if line.text in limits else _required(line.text)
            if key not in named and is_plain_requirement(line.text):
                named.add(key)
                yield line

    def _undeclared(self) -> Iterator[SourceLine]:
        """Yield modules imported by the package's files, each once."""
        folders = tuple(f"{base}{self.module}/" for base in _BASES if self.module)
        files = [path for path in self.texts.named(".py") if path.startswith(folders)]
        declared = "\n".join([*map(self.texts.read, _DECLARING), *self.requires])
        named = {*re.findall(r"\w+", declared.lower().replace("-", "_")), self.module.lower()}
        named |= {_TORCH, *(Path(path).stem.lower() for path in files)}
        left, most = _MOST_BYTES, len(named) + _MOST_MODULES
        for path in files[:_MOST_FILES]:
            left -= len(text := self.texts.read(path))
            for found in first_imports(path, text) if left >= 0 else ():
                name = found.text.partition(".")[0]
                if name.lower() not in named and len(named) < most:
                    named.add(name.lower())
                    yield SourceLine(name, path, found.line)

    def _stated(self, key: str, keyword: str) -> SourceLine | None:
        """Return a key of [project] in pyproject.toml, or else a keyword of setup()."""
        if isinstance(value := self.project.get(key), str):
            return self._line(value, key)
        found = (code.keywords.get(keyword, ()) for code in self.python[:1])
        return next((lines[0] for lines in found if len(lines) == 1), None)

    def _line(self, text: str, sought: str) -> SourceLine:
        """Return `text` with the first line of pyproject.toml that contains `sought`."""
        at = self.pyproject.find(sought)
        return SourceLine(text, PYPROJECT, line_at(self.pyproject, at) if at >= 0 else 0)


def _table(table: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


def _list(table: Mapping[str, object], key: str) -> list[str]:
    found = table.get(key)
    return [str(item) for item in found] if isinstance(found, list) else []


def _files_of(module: str, roots: list[str]) -> list[str]:
    path = module.replace(".", "/")
    return [f"{root}{path}{end}" for root in roots for end in (".py", "/__init__.py") if path]


def _required(text: str) -> str:
    """Return the name in a requirement, or an empty string."""
    with suppress(InvalidRequirement):
        return canonicalize_name(parse_requirement(text).name)
    return ""
