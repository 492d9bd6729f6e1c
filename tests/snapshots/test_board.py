"""What a build looks like, in words: the board, and lines where there is no terminal."""

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from torchyard.cli.build_display import package_table
from torchyard.model.event import (
    AnyEvent,
    Began,
    Ended,
    Finished,
    Noted,
    Progress,
    SlotsChanged,
    Started,
    Stepped,
    Stepping,
)
from torchyard.model.result import Usage
from torchyard.run.work_left import NinjaProgress
from torchyard.terminal.board import Board, BoardView, clock
from torchyard.terminal.events import event_line, printer
from torchyard.terminal.progress import shorten

CORE = "core:torch-2.14.0/linux-x86_64/cu130-mkl"
BINDINGS = "bindings:torch-2.14.0/linux-x86_64/cpu-mkl/cp313t"
SOURCE = "source:torch-2.14.0"
USED = Usage(step="copy", seconds=2.0, cpu=1.0, memory=10**6, disk=10**6)

STORY: list[AnyEvent] = [
    Began(
        project="torch-2.14.0",
        store="s3://builds",
        jobs=40,
        needed=5,
        cached=9,
        slots=16,
        stages={"source": 1, "core": 2, "bindings": 2},
        expected={"core": 7200.0},
    ),
    Started(at=0.1, job=SOURCE, fingerprint="0" * 64, work="w", pid=1),
    Stepping(at=0.2, job=SOURCE, step="check the source out", number=1, of=1),
    Stepped(at=8.0, job=SOURCE, usage=USED),
    Ended(at=8.2, job=SOURCE, fingerprint="0" * 64, outcome="built", seconds=8.0, size=2 * 10**9),
    Started(at=9.0, job=CORE, fingerprint="1" * 64, work="w", pid=2),
    Stepping(at=9.0, job=CORE, step="compile", number=2, of=3),
    Progress(at=3000.0, job=CORE, done=1200, total=1331),
    SlotsChanged(at=3100.0, allowed=9, total=16, paused=2, available=10**9, why="memory is short"),
    Noted(at=3200.0, job=CORE, text="was also built elsewhere"),
    Ended(
        at=3300.0,
        job=BINDINGS,
        fingerprint="2" * 64,
        outcome="retry",
        reason="memory",
        why="a compiler was killed; now with 8 of 16 slots",
    ),
    Started(at=3400.0, job=BINDINGS, fingerprint="2" * 64, work="w", pid=3, attempt=2),
    Stepping(at=3400.0, job=BINDINGS, step="compile for one Python", number=1, of=2),
]
END: list[AnyEvent] = [
    Ended(
        at=4000.0,
        job=BINDINGS,
        fingerprint="2" * 64,
        outcome="failed",
        code=9,
        why=f"{BINDINGS}: `compile` failed with exit code 1\n  12 | error: no",
    ),
    Finished(at=4000.0, built=1, cached=9, failed=1, skipped=3, seconds=4000.0),
]


def drawn(board: Board, now: float, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(BoardView(board, now, {CORE: 31 * 10**9}))
    return captured.get()


@pytest.mark.parametrize("width", [120, 80, 60])
def test_the_board(snapshot: SnapshotAssertion, width: int) -> None:
    board = Board()
    for event in STORY:
        board(event)
    text = drawn(board, 3500.0, width)
    assert max(map(len, text.splitlines())) <= width
    assert text == snapshot
    for event in END:
        board(event)
    assert drawn(board, 4000.0, width) == snapshot


def test_lines(snapshot: SnapshotAssertion) -> None:
    assert [event_line(event) for event in (*STORY, *END)] == snapshot


def test_jobs_of_a_farm_are_told_with_their_workers() -> None:
    began = Began(project="torch-2.14.0", store="s", jobs=2, needed=2, cached=0, slots=0)
    started = Started(at=10.0, job=CORE, fingerprint="1" * 64, worker="w1-2", attempt=2)
    assert event_line(began) == "torch-2.14.0: 2 of 2 jobs to do"
    assert event_line(started) == f"started  {CORE} on w1-2 (attempt 2)"
    board = Board()
    board(began)
    board(started)
    line = drawn(board, 75.0, 60).splitlines()[1]
    assert "  on w1-2  " in line
    assert line.endswith("  1:05")


def test_nothing_is_promised_that_nobody_knows() -> None:
    board = Board()
    assert board.remaining(1.0) is None
    board(STORY[0])
    assert board.remaining(1.0) is None, "no bindings were ever built"
    board(Began(project="x", store="s", jobs=1, needed=2, cached=0, slots=1, stages={"core": 2}))
    board(Started(at=10.0, job=CORE, fingerprint="1" * 64, work="w", pid=2))
    board(Stepping(at=20.0, job=CORE, step="compile", number=1, of=1))
    board(Progress(at=30.0, job=CORE, done=1, total=4))
    assert board.remaining(30.0) is None, "of the other core nothing is known"
    board(Ended(at=60.0, job=CORE, fingerprint="1" * 64, outcome="built", seconds=50.0))
    assert board.remaining(60.0) == 50.0
    board(Started(at=60.0, job=CORE, fingerprint="1" * 64, work="w", pid=2))
    board(Progress(at=70.0, job=CORE, done=1, total=1101))
    assert board.remaining(70.0) == 40.0, "as long as the other core"
    board(Progress(at=70.0, job=CORE, done=2, total=1101, left=90.0))
    assert board.remaining(80.0) == 80.0, "as its job says"


def test_names_are_cut_in_their_middle() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghij", 7) == "abc…hij"
    assert [clock(seconds) for seconds in (5.9, 65, 3725)] == ["0:05", "1:05", "1:02:05"]


def test_the_final_table(snapshot: SnapshotAssertion) -> None:
    rows = [
        ("package:torch-2.14.0/linux-x86_64/cpu-mkl/cp312/wheel", "built", 61.0, 10**9, "ab" * 32),
        ("package:torch-2.14.0/linux-x86_64/cpu-mkl/cp313/wheel", "cached", 0.0, 10**9, "cd" * 32),
        ("package:torch-2.14.0/linux-x86_64/cpu-mkl/cp314/wheel", "failed", 0.0, 0, ""),
    ]
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(package_table("torch-2.14.0", rows))
    assert captured.get() == snapshot


def test_without_a_board_long_steps_say_each_minute_how_far_they_are() -> None:
    said: list[str] = []
    listen = printer(said.append)
    listen(Stepping(at=10, job=CORE, step="compile", number=1, of=1))
    for at, done in ((1, 1), (59, 90), (60, 100), (61, 101), (119, 199), (120, 200)):
        listen(Progress(at=10.0 + at, job=CORE, done=done, total=1000, left=600.0 - at))
    listen(Progress(at=200, job=CORE, done=34 * 10**7, unit="bytes", what="fetching"))
    listen(Progress(at=270, job=CORE, done=3, total=34, unit="tests", what="uv, clean: any/x.py"))
    assert said == [
        f"step 1/1  {CORE}: compile",
        f"working  {CORE}: 100 of 1,000 commands, about 9 min left",
        f"working  {CORE}: 200 of 1,000 commands, about 8 min left",
        f"working  {CORE}: fetching, 340 MB written",
        f"working  {CORE}: uv, clean: any/x.py, 3 of 34 tests",
    ]


def counted(*lines: str) -> list[tuple[int, int, str, str] | None]:
    """How far a step says to be: what is done, of how much, its unit, and what it does now."""
    progress = NinjaProgress(CORE)
    events = [progress.read(line) for line in lines]
    return [(one.done, one.total, one.unit, one.what) if one else None for one in events]


def test_commands_of_several_runs_of_ninja_add_up() -> None:
    lines = ("[1/2] c++ a.o", "[2/2] c++ b.o", "building '_b'", "[1/1] c++ c.o", "[1/1] c++ d.o")
    counts = [one and one[:2] for one in counted(*lines)]
    assert counts == [(1, 2), (2, 2), None, (3, 3), (4, 4)]


def test_a_first_run_of_ninja_that_generates_code_is_said_to_do_that() -> None:
    first = [f"[{done}/94] Generating sources {done}.h" for done in range(1, 94)]
    lines = [*first, "[94/94] Re-running CMake", "[1/1101] Building CXX object a.dir/x.cpp.o"]
    *_, cmake, compiled = counted(*lines)
    assert cmake == (94, 94, "commands", "generating code")
    assert compiled == (95, 1195, "commands", "")


def test_tests_are_counted_with_their_names() -> None:
    name = "uv, clean: torch/ops.py"
    assert counted(f"[3/34 tests] {name}") == [(3, 34, "tests", name)]
    assert counted("[3/34 1.5s] c++ a.o") == [(3, 34, "commands", "")]


@pytest.mark.parametrize("width", [80, 60])
def test_what_jobs_do_is_never_cut(width: int) -> None:
    """At 80 columns it was `…wheel`."""
    board = Board()
    for event in STORY:
        board(event)
    board(Stepping(at=3401.0, job=BINDINGS, step="make the project's own wheel", number=4, of=5))
    board(Progress(at=3402.0, job=CORE, done=3, total=34, unit="tests", what="uv: torch/save.py"))
    board(Progress(at=3402.0, job=BINDINGS, done=31 * 10**7, unit="bytes"))
    lines = drawn(board, 3500.0, width).splitlines()
    assert "  4/5 make the project's own wheel, 310 MB written" in lines
    assert "  2/3 compile, uv: torch/save.py" in lines
    assert lines[1].startswith("core:linux-x86_64/cu130-mkl ")
    assert lines[1].endswith("3/34   31 GB   58:11")
