"""Builds whose files were written to do harm, or are not what was named: no traceback, no wait."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.helpers import Command

from torchyard.insight.build_record import BUILD_FILE, LOG, read_build
from torchyard.toolchain.reading.source_text import read_beginning

HEADER = "# ninja log v7\n"
UNIT = "build a.o: cxx a.c\n"
LINKED = "build liba.so: CXX_SHARED_LIBRARY_LINKER__a_ a.o\n"
ESCAPE = "\x1b]0;title\x07\x1b[31m"
MARKUP = "<script>alert(1)</script>"
REPLIES = ".cmake/api/v1/reply"


def written(folder: Path, text: str | bytes, log: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / BUILD_FILE).write_bytes(text.encode() if isinstance(text, str) else text)
    (folder / LOG).write_text(HEADER + log)
    return folder


def phony_chain(length: int) -> str:
    names = "".join(f"build p{n}: phony p{n + 1}\n" for n in range(length))
    return f"{names}build p{length}: cxx a\nbuild z.o: cxx p0\n"


@pytest.mark.parametrize(
    ("text", "log"),
    [
        ("build a.o:\nbuild :\nbuild x\nbuild :::\nbuild $: $: $\n", "0\t1\t1\ta.o\th\n"),
        (b"build \xff\xfe.o: cxx a\n", ""),
        ("build a.so: CMAKE_SYMLINK_LIBRARY\n", ""),
        ("build a\0.o: cxx a\nbuild lib.so: link a\0.o\n", ""),
        (f"{LINKED}  LINK_LIBRARIES = /{'x' * 5000}.so /.so -l/\n", ""),
        (UNIT, "x\ty\tz\ta.o\th\n"),
        (UNIT, f"{'9' * 5000}\t{'9' * 6000}\t1\ta.o\th\n"),
        (UNIT, f"0\t{'9' * 18}\t1\ta.o\th\n"),
        (UNIT, "-5\t-9\t-1\ta.o\th\n"),
        ("build a.o: cxx b.o\nbuild b.o: cxx a.o\n", "0\t9\t1\ta.o\th\n0\t9\t1\tb.o\tg\n"),
        (phony_chain(3000), "0\t10\t1\tp3000\tg\n10\t20\t1\tz.o\th\n"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_nonsense_is_read_or_left_out(
    torchyard: Command, tmp_path: Path, text: str | bytes, log: str
) -> None:
    build = written(tmp_path / "build", text, log)
    for command in (["graph", build], ["timings", build, "--html", tmp_path / "page.html"]):
        done = torchyard(*command)
        assert done.code == 0, done.err


def test_a_long_row_of_names_is_followed(tmp_path: Path) -> None:
    log = "0\t10\t1\tp3000\tg\n10\t20\t1\tz.o\th\n"
    record = read_build(written(tmp_path / "build", phony_chain(3000), log))
    assert [unit.name for unit in record.critical_path()] == ["p3000", "z.o"]


@pytest.mark.parametrize("name", [BUILD_FILE, LOG])
def test_a_file_without_end_is_not_read(torchyard: Command, tmp_path: Path, name: str) -> None:
    build = written(tmp_path / "build", UNIT)
    os.truncate(build / name, 1 << 40)
    for command in (["timings", build], ["explain", "rebuild", build / "a.o"]):
        done = torchyard(*command)
        assert done.code == 9
        assert "are read at most" in done.err.replace("\n", " ")


def made_pipe(path: Path) -> None:
    os.mkfifo(path)


def made_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def made_nest(path: Path) -> None:
    path.write_text("[" * 100_000)


def made_way_out(path: Path) -> None:
    outside = '{"jsonFile": "../../../../../../etc/passwd"}'
    path.write_text(f'{{"reply": {{"codemodel-v2": {outside}}}}}')


@pytest.mark.parametrize("make", [made_pipe, made_device, made_nest, made_way_out])
def test_answers_of_cmake_that_are_none(
    torchyard: Command, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    build = written(tmp_path / "build", UNIT)
    (build / REPLIES).mkdir(parents=True)
    make(build / REPLIES / "index-1.json")
    done = torchyard("graph", build)
    assert done.code == 9
    assert "is not a reply of CMake" in done.err.replace("\n", " ")
    assert "/etc" not in done.err


@pytest.mark.parametrize("make", [made_pipe, made_device])
def test_where_a_text_is_expected(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / ".gitmodules")
    assert read_beginning(tmp_path / ".gitmodules") == ""


def test_names_reach_neither_the_terminal_nor_the_page(torchyard: Command, tmp_path: Path) -> None:
    unit = f"CMakeFiles/{ESCAPE}{MARKUP.replace('/', '')}.dir/a.o"
    library = f"/usr/lib/{ESCAPE}{MARKUP}.so"
    text = f"build {unit}: cxx a\nbuild l.so: CXX_SHARED_LIBRARY_LINKER__l.1b.5b1m_ {unit}\n"
    linked = f"{text}  LINK_LIBRARIES = {library}\n"
    build = written(tmp_path / "build", linked, f"0\t5000\t1\t{unit}\th\n")
    page, drawn = tmp_path / "timings.html", tmp_path / "graph.html"
    for command in (["graph", build, "--html", drawn], ["timings", build, "--html", page]):
        done = torchyard(*command)
        assert done.code == 0, done.err
        assert "\x1b" not in done.out + done.err
    assert "alert(1)" in drawn.read_text()
    assert "<script" not in drawn.read_text() + page.read_text()


# ------------------------------------------------------------------------ wrong arguments


@pytest.mark.parametrize("command", ["graph", "timings", "explain rebuild"])
def test_what_is_neither_a_path_nor_a_job(
    torchyard: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = torchyard(*command.split(), "nowhere")
    assert done.code == 5
    assert "there is no file or directory `nowhere`" in done.err
    assert "torchyard.toml" in done.err


def test_a_wheel_that_is_none(torchyard: Command, tmp_path: Path) -> None:
    wheel = tmp_path / "torch-2.6.0-cp312-cp312-linux_x86_64.whl"
    wheel.write_text("404 not found")
    build = written(tmp_path / "build", UNIT)
    for words in (["graph", wheel], ["graph", build, "--against", wheel]):
        done = torchyard(*words)
        assert done.code == 5
        assert "can't be read as a package" in done.err.replace("\n", " ")


def test_a_build_that_ninja_has_not_begun(torchyard: Command, tmp_path: Path) -> None:
    build = written(tmp_path / "build", UNIT + LINKED)
    (build / LOG).unlink()
    done = torchyard("timings", build)
    assert done.code == 2
    assert "run ninja there" in done.err.replace("\n", " ")


def test_a_directory_of_another_generator(torchyard: Command, tmp_path: Path) -> None:
    (tmp_path / "Makefile").touch()
    done = torchyard("graph", tmp_path)
    assert done.code == 2
    assert "cmake -G Ninja" in done.err.replace("\n", " ")
    done = torchyard("explain", "rebuild", tmp_path)
    assert done.code == 5
    assert "is not an output of ninja" in done.err.replace("\n", " ")


def test_a_long_chain_of_libraries_is_drawn(torchyard: Command, tmp_path: Path) -> None:
    """Each of them is needed by the one before: with 3,000, what is squared takes minutes."""
    text = "".join(
        f"build lib{n}.so: CXX_SHARED_LIBRARY_LINKER__l{n}_ {n}.o\n"
        f"  LINK_LIBRARIES = lib{n + 1}.so\n"
        for n in range(3001)
    )
    build = written(tmp_path / "build", text)
    picture = tmp_path / "graph.svg"
    assert torchyard("graph", build, "--svg", picture).code == 0
    assert picture.read_text().count("<rect") >= 3001


def test_why_does_not_wait_for_a_pipe(
    torchyard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchyard.insight.file_cause._SECONDS", 0.5)
    build = written(tmp_path / "build", f"rule cxx\n  command = c++\n{UNIT}include more.ninja\n")
    os.mkfifo(build / "more.ninja")
    done = torchyard("explain", "rebuild", build / "a.o")
    assert done.code == 9
    assert "has not read" in done.err
    assert "a pipe?" in done.err.replace("\n", " ")
