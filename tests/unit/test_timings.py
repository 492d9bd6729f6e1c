"""The time of a build, from the files that ninja leaves."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.helpers import Command
from tests.support.schemas import validate

from torchyard.errors import BuildError
from torchyard.insight.build_record import BuildRecord, TargetTime, read_build
from torchyard.insight.ninja_file import Edge, read_ninja_file
from torchyard.insight.ninja_log import LogEntry, read_ninja_log
from torchyard.insight.regression import find_slower

BUILD = """\
# written by CMake
ninja_required_version = 1.5
cmake_ninja_workdir = /b/
include CMakeFiles/rules.ninja

build cmake_object_order_depends_target_core: phony || .
build CMakeFiles/core.dir/a.cpp.o: CXX_COMPILER__core_unscanned_Release ../a.cpp || gen.h
  FLAGS = -O2
build CMakeFiles/core.dir/b.cpp.o: CXX_COMPILER__core_unscanned_Release ../b.cpp || gen.h
build gen.h | ${cmake_ninja_workdir}gen.h: CUSTOM_COMMAND ../gen.py
build lib/libcore.so: CXX_SHARED_LIBRARY_LINKER__core_Release CMakeFiles/core.dir/a.cpp.o $
    CMakeFiles/core.dir/b.cpp.o | /usr/lib/libm.so
build all: phony lib/libcore.so
"""

A, B, LIB = "CMakeFiles/core.dir/a.cpp.o", "CMakeFiles/core.dir/b.cpp.o", "lib/libcore.so"
TIMES = {"gen.h": (0, 1000), A: (1000, 4000), B: (1000, 6000), LIB: (6000, 8000)}


def write_build(folder: Path, times: Mapping[str, tuple[int, int]], text: str = BUILD) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "build.ninja").write_text(text)
    rows = [f"{begin}\t{end}\t0\t{name}\t{hash(name):x}\n" for name, (begin, end) in times.items()]
    (folder / ".ninja_log").write_text("".join(("# ninja log v7\n", *rows)))
    return folder


# ------------------------------------------------------------------------ build.ninja


def test_variables_of_variables_do_not_take_all_memory(tmp_path: Path) -> None:
    lines = ["a0 = xxxxxxxxxxxxxxxx", *(f"a{n} = $a{n - 1}$a{n - 1}" for n in range(1, 33))]
    path = tmp_path / "build.ninja"
    path.write_text("\n".join((*lines, "build out: phony $a32", "")), encoding="utf-8")
    with pytest.raises(BuildError, match="is longer than 1,048,576 characters"):
        read_ninja_file(path)


def test_edges_have_all_their_outputs_and_inputs(tmp_path: Path) -> None:
    edges = read_ninja_file(write_build(tmp_path, {}) / "build.ninja")
    assert len(edges) == 6
    assert edges[0].is_phony
    assert edges[3] == Edge(("gen.h", "/b/gen.h"), "CUSTOM_COMMAND", ("../gen.py",))
    assert edges[4].inputs == (A, B, "/usr/lib/libm.so")


@pytest.mark.parametrize(
    ("line", "edge"),
    [
        ("build a$ b: cc c$:d $$e", Edge(("a b",), "cc", ("c:d", "$e"))),
        ("build C$:/x.o: cc C$:/x.c", Edge(("C:/x.o",), "cc", ("C:/x.c",))),
        ("build x$$: cc", Edge(("x$",), "cc", ())),
        ("build x: cc a | b || c |@ d", Edge(("x",), "cc", ("a", "b"), ("c", "d"))),
        ("build x: cc $missing/y", Edge(("x",), "cc", ("/y",))),
    ],
)
def test_escapes(tmp_path: Path, line: str, edge: Edge) -> None:
    path = tmp_path / "build.ninja"
    path.write_text(f"{line}\n")
    assert read_ninja_file(path) == [edge]


# -------------------------------------------------------------------------------- log


def test_a_command_has_all_its_outputs_and_its_last_run(tmp_path: Path) -> None:
    path = tmp_path / ".ninja_log"
    path.write_text(
        "# ninja log v7\n"
        "0\t100\t0\ta.h\tcafe\n0\t100\t0\ta.cpp\tcafe\n"
        "50\t900\t0\told.o\tbeef\n"
        "0\t200\t0\told.o\tbeef\n"  # another run of ninja
        "200\t30"  # ninja was killed
    )
    assert read_ninja_log(path) == [
        LogEntry(0, 0.0, 0.1, ("a.h", "a.cpp")),
        LogEntry(1, 0.0, 0.2, ("old.o",)),
    ]


def test_no_log(tmp_path: Path) -> None:
    path = tmp_path / ".ninja_log"
    path.write_text("something else\n")
    with pytest.raises(BuildError, match="no log of ninja"):
        read_ninja_log(path)


# ----------------------------------------------------------------------------- record


@pytest.fixture
def record(tmp_path: Path) -> BuildRecord:
    return read_build(write_build(tmp_path, TIMES))


def test_times_belong_to_targets(record: BuildRecord) -> None:
    assert record.targets() == [TargetTime("core", 2, 10.0), TargetTime("other commands", 0, 1.0)]
    assert (record.seconds, record.work) == (8.0, 11.0)


def test_the_critical_path_goes_through_what_is_needed(record: BuildRecord) -> None:
    assert [unit.name for unit in record.critical_path()] == ["gen.h", B, LIB]


def test_slots_are_simulated(record: BuildRecord) -> None:
    assert [record.with_slots(count) for count in (1, 2, 64)] == [11.0, 8.0, 8.0]


def test_needs_are_followed_through_names(tmp_path: Path) -> None:
    """An edge that ran no command, as its outputs were there, hides nothing that it needs."""
    text = "build all: phony mid\nbuild mid: phony first\nbuild first: cc\nbuild last: cc || all\n"
    record = read_build(write_build(tmp_path, {"first": (0, 10), "last": (10, 30)}, text))
    assert record.with_slots(8) == 0.03


# -------------------------------------------------------------------------- regression


def test_only_what_lost_its_proportion_is_slower(tmp_path: Path) -> None:
    """All of the machine was half as fast; one unit took three times as long on top of that."""
    many = {f"CMakeFiles/core.dir/{n}.cpp.o": (0, 2000 + n) for n in range(20)}
    text = "".join(f"build {name}: cc\n" for name in many)
    before = read_build(write_build(tmp_path / "before", many, text))
    later = {name: (0, end * 2) for name, (_, end) in many.items()}
    worst = "CMakeFiles/core.dir/7.cpp.o"
    later[worst] = (0, later[worst][1] * 3)
    now = read_build(write_build(tmp_path / "now", later, text))
    (found,) = find_slower(now, before, 1.5)
    assert (found.kind, found.name) == ("unit", worst)
    assert found.ratio == pytest.approx(3, rel=0.01)
    assert find_slower(before, before, 1.5) == []


# ---------------------------------------------------------------------------- command


def test_the_report(torchyard: Command, tmp_path: Path) -> None:
    folder = write_build(tmp_path / "build", TIMES)
    page, trace = tmp_path / "t.html", tmp_path / "t.json"
    done = torchyard("timings", folder, "--html", page, "--trace", trace, "--slots", 2)
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0].endswith("build: 8 s, 11 s of commands")
    for line in ("core 2 10 s 91%", "5.0 s CMakeFiles/core.dir/b.cpp.o", "2 8 s"):
        assert line in lines
    events = json.loads(trace.read_text())["traceEvents"]
    assert [(one["tid"], one["ts"], one["dur"]) for one in events] == [
        (0, 0, 1_000_000),
        (0, 1_000_000, 3_000_000),
        (1, 1_000_000, 5_000_000),
        (0, 6_000_000, 2_000_000),
    ]
    assert page.read_text().count("<rect ") == len(TIMES)
    document = json.loads(torchyard("timings", folder, "--json").out)
    validate(document, "timings")


def test_names_cannot_break_the_page(torchyard: Command, tmp_path: Path) -> None:
    name = "<script>alert(1)</script>.o"
    folder = write_build(tmp_path / "build", {name: (0, 9)}, f"build {name}: cc\n")
    torchyard("timings", folder, "--html", tmp_path / "t.html")
    assert "<script>" not in (tmp_path / "t.html").read_text()


def test_a_slower_build_is_refused(torchyard: Command, tmp_path: Path) -> None:
    before = write_build(tmp_path / "before", TIMES)
    later = write_build(tmp_path / "later", TIMES | {LIB: (6000, 12_000)})
    done = torchyard("timings", later, "--against", before)
    assert done.code == 13
    assert f"error: unit {LIB} takes 3.0 times as long as before" in done.err
    assert torchyard("timings", later, "--against", before, "--ratio", 4).code == 0


@pytest.mark.parametrize("missing", ["build.ninja", ".ninja_log"])
def test_a_directory_that_ninja_did_not_build_in(
    torchyard: Command, tmp_path: Path, missing: str
) -> None:
    (write_build(tmp_path, TIMES) / missing).unlink()
    done = torchyard("timings", tmp_path)
    assert done.code == 2
    assert f"has no {missing}: " in done.err
