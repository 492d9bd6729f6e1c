"""Tests: plain files, each described by a header of comments.

A Python file begins with lines such as `# level: ops`, a C++ file with `// level: ops`. A folder
with a `CMakeLists.txt` is also a test: a project that uses the package. The header ends at the
first line that is not a comment; each of its lines is `key: value`.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Literal, NoReturn

import msgspec

from torchyard.errors import UsageError
from torchyard.host.files import data_path
from torchyard.model.suggest import did_you_mean
from torchyard.model.values import Value

BUILD_FILE = "CMakeLists.txt"
IMPORT = "any/import.py"
"""The test on which all others depend."""

TIMEOUT = 120
"""The default time limit of a test, in seconds."""

_PAIR = re.compile(r"([a-z]+):\s*(.*)")


class Level(StrEnum):
    """How thorough the tests are: each level includes the tests of the levels before it."""

    IMPORT = "import"
    OPS = "ops"
    FULL = "full"

    def includes(self, other: "Level") -> bool:
        order = list(Level)
        return order.index(other) <= order.index(self)


class Need(StrEnum):
    """What a test needs in addition to the package."""

    COMPILER = "compiler"
    HEADERS = "headers"
    """Python's headers."""
    NUMPY = "numpy"
    GPU = "gpu"


Language = Literal["python", "c++", "cmake", "shell"]


class Test(Value, kw_only=True):
    """A test file, or a folder with a project."""

    name: str
    path: str
    language: Language
    level: Level
    about: str
    needs: tuple[Need, ...] = ()
    timeout: int = TIMEOUT
    package: str = ""
    """The package that a C++ file uses by `find_package`."""


class _Header(Value, kw_only=True):
    level: Level
    about: str
    needs: str = ""
    timeout: int = TIMEOUT
    package: str = ""


def built_in(folder: str) -> tuple[Test, ...]:
    """Return a suite of torchyard: `any`, `torch` or `with_torch`."""
    return read_suite(Path(data_path(f"smoke/{folder}")), prefix=folder)


def read_suite(folder: Path, prefix: str = "") -> tuple[Test, ...]:
    """Return all tests of a folder, by level and name."""
    if not folder.is_dir():
        msg = f"there is no folder `{folder}` with tests"
        raise UsageError(msg)
    prefix = prefix or folder.resolve().name
    found = [_read(path, language, prefix) for path, language in _tests_in(folder)]
    order = list(Level)
    return tuple(sorted(found, key=lambda test: (order.index(test.level), test.name)))


def _tests_in(folder: Path) -> Iterator[tuple[Path, Language]]:
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py":
            yield path, "python"
        elif path.suffix == ".cpp":
            yield path, "c++"
        elif (path / BUILD_FILE).is_file():
            yield path, "cmake"


def _read(path: Path, language: Language, prefix: str) -> Test:
    file = path / BUILD_FILE if language == "cmake" else path
    sign = "//" if language == "c++" else "#"
    pairs: dict[str, str] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith(sign):
            break
        pair = _PAIR.fullmatch(line.removeprefix(sign).strip())
        if pair is None or pair[1] in pairs:
            problem = "is no `key: value`" if pair is None else "is there twice"
            _refuse(
                file, f"line {number} of its header {problem}", "see docs/guides/smoke-a-package"
            )
        pairs[pair[1]] = pair[2]
    header = _header(file, pairs)
    if header.package and language != "c++":
        _refuse(file, "`package` is for C++ files", "call find_package in the test itself")
    return Test(
        name=f"{prefix}/{path.name}",
        path=str(path.resolve()),
        language=language,
        level=header.level,
        about=header.about,
        needs=tuple(_needs(file, header.needs)),
        timeout=header.timeout,
        package=header.package,
    )


def _header(file: Path, pairs: dict[str, str]) -> _Header:
    known = _Header.__struct_fields__
    for key in pairs:
        if key not in known:
            _refuse(file, f"its header has the unknown key `{key}`", did_you_mean(key, known))
    for key in ("level", "about"):
        if key not in pairs:
            hint = f"begin with `level: …` ({', '.join(Level)}) and `about: …`, as comments"
            _refuse(file, f"its header lacks `{key}`", hint)
    level, seconds = pairs["level"], pairs.get("timeout", str(TIMEOUT))
    if level not in list(Level):
        _refuse(file, f"its level is the unknown `{level}`", did_you_mean(level, list(Level)))
    if not seconds.isdecimal() or not int(seconds):
        what = f"its timeout `{seconds}` is no number of seconds"
        _refuse(file, what, "write, for example, `timeout: 60`")
    return msgspec.convert(pairs, _Header, strict=False)


def _needs(file: Path, words: str) -> Iterator[Need]:
    for word in words.split():
        if word not in list(Need):
            _refuse(file, f"it needs the unknown `{word}`", did_you_mean(word, list(Need)))
        yield Need(word)


def _refuse(file: Path, why: str, hint: str | None) -> NoReturn:
    msg = f"the test `{file}` can't be used: {why}"
    raise UsageError(msg, hint=hint)
