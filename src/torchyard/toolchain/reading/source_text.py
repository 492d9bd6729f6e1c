"""The texts of a source tree that is not trusted, and what lines of them say."""

import os
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import field

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.values import Value

_LONGEST = 1 << 20
_MOST_ENTRIES = 100_000


class SourceLine(Value):
    """What a line of a file says; line 0 is the file as a whole."""

    text: str
    file: str
    line: int = 0

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Switch(SourceLine, kw_only=True):
    """A variable that a build asks its environment for, or an option of CMake: `text` is its name.

    `default` is its value if it is not set, `expects` the one that the code compares it with; each
    is empty if the code does not say it. Computed parts of a name are `*`.
    """

    default: str = ""
    expects: str = ""
    is_cmake: bool = False


class DownloadKind(StrEnum):
    """By what something is downloaded while a project is built."""

    FETCH_CONTENT = "FetchContent"
    EXTERNAL_PROJECT = "ExternalProject"
    CPM = "CPM"
    CMAKE_FILE = "file(DOWNLOAD)"
    PYTHON = "Python"
    PROGRAM = "a program"
    SUBMODULE = "git submodule"
    CARGO = "cargo"


class Download(SourceLine, kw_only=True):
    """Something that a build downloads: `text` is its name there, or the call that does it.

    `url` can have variables in it, as written. `revision` is a git commit, tag or branch; without
    one, `url` is a file. `digest` is what the project expects, as `SHA256=…`.
    """

    kind: DownloadKind
    url: str = ""
    revision: str = ""
    digest: str = ""


class CodeReading(Value, kw_only=True):
    """What one file of Python or CMake says.

    `imports` are modules that are not Python's own, `needed` those of them that are imported
    without an `if` or `try` around it. `names` are all that it uses, by their first line.
    `keywords` are those of setup(), with their texts; `hook` has those of a build backend's
    requirements. `compiles` is what makes modules of compiled code, `torch` and `cuda` where CMake
    finds Torch, and turns CUDA on.
    """

    file: str
    switches: tuple[Switch, ...] = ()
    downloads: tuple[Download, ...] = ()
    imports: tuple[SourceLine, ...] = ()
    needed: tuple[SourceLine, ...] = ()
    names: dict[str, int] = field(default_factory=dict)
    keywords: dict[str, tuple[SourceLine, ...]] = field(default_factory=dict)
    hook: tuple[SourceLine, ...] = ()
    compiles: SourceLine | None = None
    torch: SourceLine | None = None
    cuda: SourceLine | None = None


class ReadingTable(Value, kw_only=True):
    """The table `data/reading.toml`, which describes its fields."""

    compiling: frozenset[str]
    modules: frozenset[str]
    cpu_classes: frozenset[str]
    cuda_classes: frozenset[str]
    python_downloads: tuple[str, ...]
    starts: frozenset[str]
    programs: tuple[str, ...]
    present: frozenset[str]
    skipped: frozenset[str]
    skipped_files: tuple[str, ...]
    ordinary: tuple[str, ...]
    backends: dict[str, str]
    cmake_downloads: dict[str, DownloadKind]
    requirements: dict[str, str]


@cache
def reading_table() -> ReadingTable:
    return parse_table("reading.toml", read_data("reading.toml"), ReadingTable)


def line_at(text: str, position: int) -> int:
    """Return the number of the line at a position of a text."""
    return text.count("\n", 0, position) + 1


def read_beginning(path: Path) -> str:
    """Return the first megabyte of a text file; empty if it can't be read, or is no file."""
    try:
        if not path.is_file():  # a pipe would never end
            return ""
        with path.open("rb") as file:
            return file.read(_LONGEST).decode(errors="replace")
    except OSError:
        return ""


def empty_folders(tree: Path, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the submodules of a tree that have no files; paths that lead out of it are left out."""
    for name in names:
        folder = tree / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            continue
        with suppress(OSError):  # it can't be read
            if not folder.is_dir() or not any(one.name != ".git" for one in folder.iterdir()):
                yield name


class SourceTexts:
    """The files of a directory, by their paths in it; some folders of `reading_table` are left out.

    Links that lead out of it have no text.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = tuple(sorted(_paths(root), key=lambda path: (path.count("/"), path)))
        self._inside = root.resolve()

    def read(self, path: str) -> str:
        """Return the beginning of a file, or an empty text."""
        with suppress(OSError, RuntimeError, ValueError):  # a circle of links, or a zero byte
            if (self.root / path).resolve().is_relative_to(self._inside):
                return read_beginning(self.root / path)
        return ""

    def named(self, *endings: str) -> list[str]:
        """Return the paths of files with such an ending, the shallow ones first."""
        return [path for path in self.paths if path.endswith(endings)]


def _paths(root: Path) -> Iterator[str]:
    table, left = reading_table(), _MOST_ENTRIES
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name.lower() not in table.skipped)
        left -= len(folders) + len(files)
        if left < 0:
            return
        base = Path(folder).relative_to(root)
        for name in files:
            if not any_match(name, table.skipped_files):
                yield (base / name).as_posix()
