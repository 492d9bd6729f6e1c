"""Which files define a symbol and which need it: objects, archives, libraries and packages."""

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
from tests.helpers import ROOT, Command
from tests.linked_project import build_linked, pack_linked

from torchyard.errors import BuildError
from torchyard.insight.symbols import FileSymbols, find_symbol, mention_of
from torchyard.package.elf.linker_symbols import LinkerSymbols, read_linker_symbols


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_linked(tmp_path_factory.mktemp("linked"))


def test_objects_archives_and_libraries(torchyard: Command, build: Path) -> None:
    assert torchyard("symbol", "tiny_format", build).out == (
        "tiny_format\n"
        "  defined in\n"
        "    libtinyfmt.a\n"
        "    lib/libbase.so\n"
        "    CMakeFiles/tinyfmt.dir/third_party/tinyfmt/tinyfmt.c.o\n"
        "  needed by\n"
        "    CMakeFiles/base.dir/base.c.o\n"
    )
    document = json.loads(torchyard("symbol", "math_answer", build, "--json").out)
    schema = json.loads((ROOT / "src/torchyard/data/schemas/symbol.json").read_text())
    jsonschema.validate(document, schema)
    (found,) = document["symbols"]
    assert found["needed_by"] == ["tool", "CMakeFiles/tool.dir/tool.c.o"]


def test_packages(torchyard: Command, build: Path, tmp_path: Path) -> None:
    wheel = pack_linked(
        build,
        tmp_path / "linked-1-py3-none-any.whl",
        libmath__so__1="lib/libmath.so.1.2.3",
        tool="tool",
    )
    assert torchyard("symbol", "math_*", wheel).out == (
        "math_answer\n  defined in\n    linked/lib/libmath.so.1\n  needed by\n    linked/lib/tool\n"
    )


def test_no_such_symbol(torchyard: Command, build: Path) -> None:
    done = torchyard("symbol", "nowhere", build)
    assert done.code != 0
    assert "has a symbol `nowhere`" in done.err


CODE = """\
namespace c10 { struct Error { Error(int); const char* what() const; }; }
namespace { int hidden(int x) { return x; } }
c10::Error::Error(int x) { hidden(x); }
const char* c10::Error::what() const { return ""; }
template <class T> T twice(T x) { return x + x; }
template int twice<int>(int);
int operator+(c10::Error, int) { return 0; }
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("c10::Error::what", ["c10::Error::what() const"]),
        ("Error::what", ["c10::Error::what() const"]),
        ("what", ["c10::Error::what() const"]),
        ("c10::Error::what() const", ["c10::Error::what() const"]),
        ("_ZNK3c105Error4whatEv", ["c10::Error::what() const"]),
        ("c10::Error::Error(int)", ["c10::Error::Error(int)"] * 2),
        ("*twice*", ["int twice<int>(int)"]),
        ("operator+(c10::Error, int)", ["operator+(c10::Error, int)"]),
        ("hat", []),
    ],
)
def test_names_may_be_demangled(cpp: LinkerSymbols, name: str, found: list[str]) -> None:
    assert mention_of(name)
    assert [one.demangled for one in find_symbol(name, [FileSymbols("x", cpp)])] == found


@pytest.fixture(scope="module")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> LinkerSymbols:
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "x.cpp").write_text(CODE)
    subprocess.run(["g++", "-c", "x.cpp", "-o", "x.o"], cwd=folder, check=True)
    return read_linker_symbols(folder / "x.o")


def test_what_is_no_object_has_no_symbols(tmp_path: Path) -> None:
    for number, content in enumerate((b"", b"text", b"!<arch>\n")):
        path = tmp_path / str(number)
        path.write_bytes(content)
        assert read_linker_symbols(path) == (frozenset(), frozenset())


BACKWARDS = b"!<arch>\n" + b"x" * 48 + b"-62       " + b"`\n"
"""An archive whose first member would be read again and again."""


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01", b"!<arch>\n" + b"x" * 60, BACKWARDS])
def test_a_damaged_object_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.o"
    path.write_bytes(content)
    with pytest.raises(BuildError, match="damaged"):
        read_linker_symbols(path)
