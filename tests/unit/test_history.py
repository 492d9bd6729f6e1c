"""Figures from run to run: planted regressions are found in the right run."""

import errno
import json
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import jsonschema
import msgspec
import pytest
from tests.helpers import ROOT, Command
from tests.made_elf import Made, make_elf

from torchyard.app.check import check_packages
from torchyard.errors import DataError
from torchyard.insight.history import Jump, find_jumps
from torchyard.insight.history_rows import HistoryRow, history_rows, keep_row
from torchyard.insight.history_table import parse_metric_kinds
from torchyard.model.canonical import fingerprint
from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.model.result import Result
from torchyard.reports.document import encode
from torchyard.reports.history.text import sparkline
from torchyard.store.gc import remove_garbage
from torchyard.store.keys import HISTORY, history_key
from torchyard.store.store import Store
from torchyard.store.trees import Writer

RUNS = 6
BAD = 3
"""The run in which something is planted; it stays in those that follow."""
LIBRARY = "torch/lib/libtorch_cuda.so"
MEGABYTE = 1_000_000


class Nightly(NamedTuple):
    """What a nightly has: a library, and units with their seconds."""

    symbols: int = 140
    filler: int = 2 * MEGABYTE
    archs: tuple[int, ...] = (80, 90)
    units: tuple[tuple[str, float], ...] = (("a.cpp.o", 10.0), ("b.cpp.o", 4.0), ("c.cpp.o", 7.0))
    seconds: float = 100.0
    cache: tuple[int, int] = (90, 10)


def fatbin(*archs: int, size: int = 400_000) -> bytes:
    """Return a container with a program for each architecture, as nvcc writes them."""
    rows = (
        struct.pack("<HHIQIIHHIIIQ", 2, 0x101, 64, size, 0, 0, 8, 1, arch, 0, 0, 0x11)
        + bytes(16 + size)
        for arch in archs
    )
    data = b"".join(rows)
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, len(data)) + data


@cache
def check_report(symbols: int, filler: int, archs: tuple[int, ...]) -> bytes:
    """Return what the check of a wheel with one library says."""
    names = [(f"symbol_{n}", 1, 0, 1) for n in range(symbols)]
    made = Made("libtorch_cuda.so", symbols=names, filler=b"here")
    code = bytes(-make_elf(made).index(b"here") % 8) + fatbin(*archs)
    library = make_elf(made._replace(filler=code + bytes(filler)))
    with TemporaryDirectory() as folder:
        wheel = Path(folder, "torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64.whl")
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(LIBRARY, library)
        return encode(check_packages([wheel]))


def task_of(stage: Stage, scope: str, release: str, **settings: str) -> Task:
    task = Task(
        id=f"{stage.value}:torch-{release}/{scope}".rstrip("/"),
        stage=stage,
        stage_revision=1,
        scope=scope,
        recipe="pytorch",
        fingerprint="0" * 64,
        settings={"release": release, **settings},
    )
    return msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))


def add_result(
    store: Store, out: Path, run: int, nightly: Nightly, tasks: tuple[Task, ...]
) -> None:
    log = out.parent / f"{out.name}.log"
    log.touch()
    writer = Writer(store)
    writer.publish(
        Result(
            fingerprint=tasks[-1].fingerprint,
            order=JobSpec(tasks=tasks),
            tree=writer.add_tree(out),
            log=writer.add_file(log, "log.gz"),
            facts=dict(zip(("cache_hits", "cache_misses"), map(str, nightly.cache), strict=True)),
            started=f"2026-11-{run + 1:02}T03:00:00Z",
            seconds=nightly.seconds,
            run=os.urandom(8).hex(),
        )
    )


def add_nightly(store: Store, folder: Path, run: int, nightly: Nightly) -> None:
    """Store the core and the check of a nightly, as jobs do."""
    release = f"2.15.0.dev{20261101 + run}"
    source = task_of(Stage.SOURCE, "", release, commit=f"{run}" * 40)
    core = folder / f"core-{run}"
    (core / "tree/build").mkdir(parents=True)
    rows = ((name, round(1000 * seconds)) for name, seconds in nightly.units)
    lines = [
        f"0\t{end}\t0\t{name}\t{end:x}\n" for name, end in sorted(rows, key=lambda row: row[1])
    ]
    (core / "tree/build/.ninja_log").write_text("".join(("# ninja log v7\n", *lines)))
    scope = "linux-x86_64/cu130-mkl"
    add_result(store, core, run, nightly, (source, task_of(Stage.CORE, scope, release)))
    check = folder / f"check-{run}"
    check.mkdir()
    report = check_report(nightly.symbols, nightly.filler, nightly.archs)
    (check / "check.json").write_bytes(report)
    tasks = (source, task_of(Stage.CHECK, f"{scope}/cp312/wheel", release))
    add_result(store, check, run, nightly, tasks)


def nightlies(folder: Path, **planted: object) -> Store:
    """Make a store with nightlies; from the bad one on, something is planted."""
    store = Store.at(str(folder / "store"))
    for run in range(RUNS):
        nightly = Nightly()._replace(**planted) if run >= BAD else Nightly()  # type: ignore[arg-type]
        add_nightly(store, folder, run, nightly)
    return store


PLANTED: dict[str, tuple[dict[str, object], tuple[str, str]]] = {
    "a unit three times slower": (
        {"units": (("a.cpp.o", 10.0), ("b.cpp.o", 12.0), ("c.cpp.o", 7.0))},
        ("unit", "b.cpp.o"),
    ),
    "a library 20 MB larger": ({"filler": 22 * MEGABYTE}, ("library", LIBRARY)),
    "40 exported symbols gone": ({"symbols": 100}, ("exports", LIBRARY)),
    "an SM added": ({"archs": (80, 90, 120)}, ("device", "sm_120")),
    "an SM gone": ({"archs": (80,)}, ("device", "sm_90")),
    "a cold cache": ({"cache": (0, 100)}, ("cache", "")),
    "a job twice as slow": ({"seconds": 210.0}, ("time", "")),
}


@pytest.mark.parametrize("what", PLANTED)
def test_planted_regressions_are_named_with_their_run(tmp_path: Path, what: str) -> None:
    planted, wanted = PLANTED[what]
    rows = history_rows(nightlies(tmp_path, **planted))
    jumps = [jump for series in by_series(rows) for jump in find_jumps(series)]
    assert wanted in {(jump.kind, jump.name) for jump in jumps}
    assert {jump.release for jump in jumps} == {f"2.15.0.dev{20261101 + BAD}"}
    assert {(jump.earlier, jump.commit) for jump in jumps} == {(f"{BAD - 1}" * 40, f"{BAD}" * 40)}
    assert {jump.kind for jump in jumps} == {wanted[0]}


def by_series(rows: list[HistoryRow]) -> Iterator[list[HistoryRow]]:
    for series in dict.fromkeys(row.series for row in rows):
        yield [row for row in rows if row.series == series]


def test_nothing_jumps_in_nightlies_that_are_alike(tmp_path: Path) -> None:
    store = nightlies(tmp_path)
    assert [find_jumps(series) for series in by_series(history_rows(store))] == [[], []]


def row_of(run: int, **metrics: float) -> HistoryRow:
    return HistoryRow(
        fingerprint=f"{run:064x}",
        job="core:torch-1/x",
        release=str(run),
        commit=str(run),
        started=f"{run:02}",
        machine="",
        metrics={name.replace("__", "/"): value for name, value in metrics.items()},
    )


def jumps_of(*values: float, name: str = "time") -> list[Jump]:
    return find_jumps([row_of(run, **{name: value}) for run, value in enumerate(values)])


def test_a_jump_is_named_once_and_so_is_the_way_back() -> None:
    jumps = jumps_of(100, 102, 98, 300, 305, 295, 100)
    assert [(jump.release, jump.before, jump.now) for jump in jumps] == [
        ("3", 100, 300),
        ("6", 300, 100),
    ]


def test_one_run_that_is_out_of_line_does_not_shift_what_is_usual() -> None:
    assert jumps_of(100, 140, 100, 145, 100) == []
    assert jumps_of(*(100 + 10 * n for n in range(5))) == []


def test_a_busier_machine_is_no_slower_unit() -> None:
    usual = {f"unit__{n}.o": 10.0 + n for n in range(9)}
    busy = {name: 2.5 * seconds for name, seconds in usual.items()}
    assert find_jumps([row_of(0, **usual), row_of(1, **busy)]) == []
    slow = busy | {"unit__3.o": 3 * busy["unit__3.o"]}
    (jump,) = find_jumps([row_of(0, **usual), row_of(1, **slow)])
    assert (jump.name, jump.before, jump.now) == ("3.o", 32.5, 97.5)


def test_a_run_whose_report_is_missing_has_no_libraries_that_vanished() -> None:
    assert (
        find_jumps([row_of(0, library__a=5e6), row_of(1, time=1), row_of(2, library__a=5e6)]) == []
    )


def test_rows_outlive_the_results_that_are_collected(tmp_path: Path) -> None:
    store = nightlies(tmp_path, symbols=100)
    before = history_rows(store)
    assert len(before) == 2 * RUNS
    remove_garbage(store, (), timedelta(seconds=-60), leave=keep_row)
    assert list(store.results()) == []
    assert history_rows(store) == before
    assert history_rows(store, ["check:*"]) == [row for row in before if row.job[:5] == "check"]
    broken = history_key(before[0].fingerprint)
    store.objects.write(broken, b'{"version": 1, "fingerp')
    moved = history_key("f" * 64)
    store.objects.write(moved, msgspec.json.encode(before[0]))
    assert history_rows(store) == before[1:]


def test_a_full_disk_does_not_stop_a_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = nightlies(tmp_path)

    write, refused = store.objects.write, []

    def refuse(key: str, data: bytes) -> None:
        if key.startswith(HISTORY):
            refused.append(key)
            raise OSError(errno.ENOSPC, "No space left on device")
        write(key, data)

    monkeypatch.setattr(store.objects, "write", refuse)
    remove_garbage(store, (), timedelta(seconds=-60), leave=keep_row)
    assert list(store.results()) == []
    assert len(refused) == 2 * RUNS


def test_mistakes_in_the_table_are_refused() -> None:
    with pytest.raises(DataError, match="is malformed"):
        parse_metric_kinds('[time]\ntitle = "time"\nunit = "seconds"\nratio = 0.5\nleast = 1\n')


def test_sparklines() -> None:
    assert sparkline([1, 2, None, 8]) == "▁▂ █"
    assert sparkline([3, 3]) == "▁▁"


# ----------------------------------------------------------------------------- command


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    nightlies(folder, filler=22 * MEGABYTE, archs=(80, 90, 120))
    return folder / "store"


def plain(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_report(torchyard: Command, larger: Path, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    done = torchyard("history", "--store", larger, "--html", page)
    assert done.code == 0
    lines = plain(done.out)
    assert "check:torch-*/linux-x86_64/cu130-mkl/cp312/wheel: 6 runs" in lines
    assert f"library {LIBRARY}: 2.81 MB, then 23.2 MB (+20.4 MB, 8.3×)" in lines
    assert "device code for sm_120: none, then 400 kB (+400 kB)" in lines
    named = [
        line for line in lines if re.search(r"^2\.15\.0\.dev20261104, .*2{10}\.\.3{10}$", line)
    ]
    assert len(named) >= 2
    assert any("▁▁▁███" in line for line in lines)
    assert "sm_120" in page.read_text()
    assert "<svg" in page.read_text()
    document = json.loads(torchyard("history", "--store", larger, "--json").out)
    schema = json.loads((ROOT / "src/torchyard/data/schemas/history.json").read_text())
    jsonschema.validate(document, schema)


def test_bytes_for_each_sm_of_two_builds(torchyard: Command, larger: Path) -> None:
    runs = ("2.15.0.dev20261101", "2.15.0.dev20261106")
    done = torchyard("history", "check:*", "--store", larger, "--between", *runs)
    assert done.code == 0
    lines = plain(done.out)
    assert "device code for sm_90 400 kB 400 kB same" in lines
    assert "device code for sm_120 none 400 kB +400 kB" in lines


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["smoke:*"], "`smoke:*` matches no cell or job"),
        (["--between", "2.15.0.dev20261101", "1"], "`2.15.0.dev20261101` means 2 jobs"),
        (["check:*", "--between", "9.9", "1"], "there is no run `9.9`"),
    ],
)
def test_runs_that_are_not_there(
    torchyard: Command, larger: Path, words: list[str], why: str
) -> None:
    done = torchyard("history", "--store", larger, *words)
    assert done.code == 5
    assert why in done.err
