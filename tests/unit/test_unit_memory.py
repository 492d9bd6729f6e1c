"""The memory of units: measured, kept in the store, and used by the guard, on real processes."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import Command
from tests.unit.test_guard import eventually
from tests.unit.test_store import store_result, task_of
from tests.unit.test_timings import TIMES, A, write_build

from torchyard.engines.guard import Guard
from torchyard.engines.remembered_units import RememberedUnits
from torchyard.host.jobserver import Jobserver
from torchyard.host.memory import Memory
from torchyard.host.process_tree import LeafProcess, find_leaf_processes
from torchyard.model.unit_usage import UNITS_FILE, UnitsDocument, UnitUsage
from torchyard.run.unit_meter import UnitMeter, leave_units
from torchyard.store.gc import remove_garbage
from torchyard.store.store import Store
from torchyard.store.unit_memory import remember_units, remembered_units, units_key_of
from torchyard.toolchain.running_unit import UnitFinder

GB = 10**9
JOB = "core:demo-1.0/linux-x86_64/cpu-mkl"
NEXT = "core:demo-2.0/linux-x86_64/cpu-mkl"
NO_TIME = timedelta(seconds=-60)

USED = UnitUsage(memory=GB, cpu=9.5)

# What is run as `sh -c … cc -o FILE` has a compiler's command line, and waits until its input ends.
COMPILER = "read line"
SEVERAL = 'exec 3<&0; for n in 1 2 3; do sh -c "read line; :" cc -c -o $n.o <&3 & done; wait'


@pytest.fixture
def compilers() -> Iterator[list[LeafProcess]]:
    """Run three compilers, of `1.o` to `3.o`, below one process."""
    argv = ["sh", "-c", SEVERAL]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as job:
        eventually(lambda: len(UnitFinder().find(find_leaf_processes([job.pid]))) == 3)
        yield find_leaf_processes([job.pid])


# ------------------------------------------------------------------------------- finding


def test_units_are_named_by_the_topmost_command(tmp_path: Path) -> None:
    commands = {
        5: "/bin/sh -c cd build && g++",
        6: "g++ -c a.cpp -o dir/a.cpp.o",
        7: "/usr/lib/cc1plus a.cpp -o /tmp/ccXX.s",
        8: "/usr/bin/as -o dir/a.cpp.o /tmp/ccXX.s",
        9: "python gen.py -o table.h",
    }
    for pid, words in commands.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(words.replace(" ", "\0").encode() + b"\0")

    def leaf(pid: int, *above: int) -> LeafProcess:
        return LeafProcess(pid, pid, 0, 0, above=above)

    found = UnitFinder(tmp_path).find([leaf(7, 6, 5), leaf(8, 6, 5), leaf(9), leaf(10)])
    assert found == {7: (5, "dir/a.cpp.o", 6)}


def test_the_largest_process_of_a_unit_counts_for_all(compilers: list[LeafProcess]) -> None:
    units = RememberedUnits()
    assert not units
    units.add({"1.o": USED, "other.o": UnitUsage(memory=3 * GB, cpu=1)})
    units.add({"1.o": UnitUsage(memory=2 * GB, cpu=1)})
    first, second, _ = compilers
    expected = units.expect([first, first._replace(pid=1, started=0, memory=0), second])
    assert expected is not None
    sizes = {first.pid: 2 * GB, second.pid: 3 * GB}  # the second is not known
    assert expected.peaks == sizes
    assert units.largest == 3 * GB


# -------------------------------------------------------------------------------- guard


def test_compilers_that_do_not_fit_together_wait_from_the_start(
    tmp_path: Path, compilers: list[LeafProcess]
) -> None:
    above = compilers[0].above
    root = int(Path(f"/proc/{above[0] if above else compilers[0].pid}/stat").read_text().split()[3])

    def stopped() -> list[bool]:
        return [worker.stopped for worker in find_leaf_processes([root])]

    free = [3 * GB]
    with Jobserver(tmp_path / "slots", 4) as slots:
        guard = Guard(slots, lambda: [root], lambda _: None, lambda: Memory(free[0], 8 * GB))
        sizes = {"1.o": 1, "2.o": 2, "3.o": 1}
        guard.units.add({n: UnitUsage(memory=s * GB, cpu=9) for n, s in sizes.items()})
        guard.start()
        eventually(lambda: stopped() == [True, False, True])
        free[0] = 8 * GB
        eventually(lambda: not any(stopped()))
        guard.stop()


# ------------------------------------------------------------------------------ measuring


def test_the_memory_of_a_unit_is_measured_and_left_beside_the_log(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    program = "import sys; kept = b'x' * 60_000_000; print(flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", program, "-o", "a.o"]
    with (
        UnitMeter() as meter,
        subprocess.Popen(
            argv,
            cwd=tmp_path / "build",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        eventually(lambda: meter.units.get("a.o", USED).memory in range(60_000_000, GB))
        assert process.stdin is not None
        process.stdin.close()
    path = tmp_path / "build" / UNITS_FILE
    path.write_bytes(b'{"version": 1, "units": {"b.o": {"memory": 5, "cpu": 1.0}}}')
    leave_units(meter, tmp_path, str(tmp_path))
    left = msgspec.json.decode(path.read_bytes(), type=UnitsDocument).units
    assert left == {"b.o": UnitUsage(memory=5, cpu=1), **meter.units}


# -------------------------------------------------------------------------------- store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.at(str(tmp_path / "store"))


def test_units_are_remembered_for_the_next_version_of_a_job(store: Store) -> None:
    remember_units(store.objects, JOB, {})
    assert store.objects.head(units_key_of(JOB)) is None
    remember_units(store.objects, JOB, {"a.o": USED, "b.o": USED})
    larger = UnitUsage(memory=2 * GB, cpu=1)
    remember_units(store.objects, NEXT, {"b.o": larger})
    assert remembered_units(store.objects, JOB) == {"a.o": USED, "b.o": larger}
    assert remembered_units(store.objects, JOB.replace("cpu", "cu130")) == {}


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version": 2, "units": {}}',
        b'{"version": 1, "units": {"a.o": {"memory": -1, "cpu": 1}}}',
        b'{"version": 1, "units": {"a.o": {"memory": 1e400, "cpu": 1}}}',
        b'{"version": 1, "units": {"a.o": {"memory": 1, "cpu": 1e99}}}',
        b'{"version": 1, "units": {"a.o": ["x"]}}',
        b" " * ((1 << 25) + 1),
    ],
    ids=range(10),
)
def test_a_record_that_cannot_be_used_is_ignored_and_replaced(
    torchyard: Command, store: Store, tmp_path: Path, record: bytes
) -> None:
    store.objects.write(units_key_of(JOB), record)
    assert remembered_units(store.objects, JOB) == {}
    remember_units(store.objects, JOB, {"a.o": USED})
    assert remembered_units(store.objects, JOB) == {"a.o": USED}
    build = write_build(tmp_path / "build", TIMES)
    (build / UNITS_FILE).write_bytes(record)
    assert torchyard("timings", build).code == 0


def test_a_record_is_collected_when_its_job_has_no_result_any_more(
    store: Store, tmp_path: Path
) -> None:
    task = task_of("kept")
    kept = store_result(store, tmp_path, task, own="1")
    store_result(store, tmp_path, task_of("gone"), own="2")
    for job in (task.id, task_of("gone").id):
        remember_units(store.objects, job, {"a.o": USED})
    remove_garbage(store, {kept.fingerprint}, timedelta(hours=1))
    assert remembered_units(store.objects, task_of("gone").id)
    remove_garbage(store, {kept.fingerprint}, NO_TIME)
    assert remembered_units(store.objects, task_of("gone").id) == {}
    assert remembered_units(store.objects, task.id) == {"a.o": USED}


# ------------------------------------------------------------------------------- timings


def test_timings_show_the_memory_of_units(torchyard: Command, tmp_path: Path) -> None:
    build = write_build(tmp_path / "build", TIMES)
    assert "most memory" not in torchyard("timings", build).out
    document = UnitsDocument(units={A: UnitUsage(memory=1_234_000_000, cpu=1)})
    (build / UNITS_FILE).write_bytes(msgspec.json.encode(document))
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    done = torchyard("timings", build, "--html", page, "--trace", trace)
    shown = [line.split() for line in done.out.splitlines() if "1.23 GB" in line]
    assert shown == [["1.23", "GB", "3.0", "s", A]]
    assert page.read_text().count("1.23 GB") == 2  # in the timeline, and in the table
    assert '"memory":1234000000' in trace.read_text()
    units = msgspec.json.decode(torchyard("timings", build, "--json").out)["units"]
    assert {unit["name"]: unit["memory"] for unit in units if unit["memory"]} == {A: 1_234_000_000}
