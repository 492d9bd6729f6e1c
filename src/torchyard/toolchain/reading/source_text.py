"""The texts of an untrusted source tree, and the facts in their lines."""

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
    """A fact in a line of a file; line 0 means the whole file."""

    text: str
    file: str
    line: int = 0

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Switch(SourceLine, kw_only=True):
    """An environment variable that a build reads, or an option of CMake; `text` is its name.

    `default` is its value if it is not set, `expects` the one that the code compares it with; both
    are empty if unknown. Computed parts of a name are `*`.
    """

    default: str = ""
    expects: str = ""
    is_cmake: bool = False


class DownloadKind(StrEnum):
    """The means of a download during a build."""

    FETCH_CONTENT = "FetchContent"
    EXTERNAL_PROJECT = "ExternalProject"
    CPM = "CPM"
    CMAKE_FILE = "file(DOWNLOAD)"
    PYTHON = "Python"
    PROGRAM = "a program"
    SUBMODULE = "git submodule"
    CARGO = "cargo"


class Download(SourceLine, kw_only=True):
    """A download of a build: `text` is its name there, or the call.

    `url` may contain variables. `revision` is a git commit, tag or branch; without
    one, `url` is a file. `digest` is the one that the project expects, as `SHA256=…`.
    """

    kind: DownloadKind
    url: str = ""
    revision: str = ""
    digest: str = ""


class CodeReading(Value, kw_only=True):
    """The facts in a file of Python or CMake.

    `imports` are modules other than Python's own; `needed` are those imported outside of `if` and
    `try`. `names` are all used names, by their first line. `keywords` are those of setup(), with
    their texts; `hook` has the requirements of a build backend. `compiles` is where modules are
    compiled, `torch` and `cuda` where CMake finds Torch and enables CUDA.
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
    """Return the first megabyte of a text file; empty if it is not a readable file."""
    try:
        if not path.is_file():  # a pipe would never end
            return ""
        with path.open("rb") as file:
            return file.read(_LONGEST).decode(errors="replace")
    except OSError:
        return ""


def empty_folders(tree: Path, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the submodules of a tree without files, except paths that lead out of it."""
    for name in names:
        folder = tree / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            continue
        with suppress(OSError):  # it can't be read
            if not folder.is_dir() or not any(one.name != ".git" for one in folder.iterdir()):
                yield name


class SourceTexts:
    """The files of a directory, by relative path, without some folders of `reading_table`.

    Links that lead out of it have no text.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = tuple(sorted(_paths(root), key=lambda path: (path.count("/"), path)))
        self._inside = root.resolve()

    def read(self, path: str) -> str:
        """Return the beginning of a file, or an empty text."""
        with suppress(OSError, RuntimeError, ValueError):  # circular links, or a zero byte
            if (self.root / path).resolve().is_relative_to(self._inside):
                return read_beginning(self.root / path)
        return ""

    def named(self, *endings: str) -> list[str]:
        """Return the paths of files with such an ending, shallow ones first."""
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
