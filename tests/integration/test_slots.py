"""Real builds share one pool of slots."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from torchyard.host.jobserver import Jobserver, makeflags
from torchyard.host.process_tree import find_leaf_processes

NINJA = shutil.which("ninja", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(NINJA is None, reason="ninja is not installed"),
]

# A compiler that writes down when it ran, and needs next to no processor.
COMPILER = """\
#!/bin/sh
read start rest </proc/uptime
sleep {seconds}
read end rest </proc/uptime
echo $start $end >>{log}
"""

GATED = """\
#!/bin/sh
read start rest </proc/uptime
: >{gate}/$$
while test -e {gate}/$$; do sleep 0.02; done
read end rest </proc/uptime
echo $start $end >>{log}
"""
LONG = 600
"""Seconds that anything may take on a machine that has much else to do."""


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[Jobserver]:
    with Jobserver(tmp_path / "slots", 4) as pool:
        yield pool


class Build:
    """A build of so many commands, each of which takes so many seconds."""

    def __init__(self, folder: Path, commands: int, seconds: float) -> None:
        folder.mkdir(parents=True)
        self.folder, self.log = folder, folder / "log"
        compiler = folder / "compiler"
        text = COMPILER.format(seconds=seconds, log=self.log)
        compiler.write_text(text, encoding="utf-8")
        compiler.chmod(0o755)
        lines = [f"rule cc\n  command = {compiler}", *(f"build o{n}: cc" for n in range(commands))]
        (folder / "build.ninja").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def start(self, makeflags: str) -> subprocess.Popen[bytes]:
        assert NINJA
        env = {**os.environ, "MAKEFLAGS": makeflags}
        return subprocess.Popen([NINJA], cwd=self.folder, env=env, stdout=subprocess.PIPE)

    def times(self) -> list[tuple[float, float]]:
        if not self.log.exists():
            return []
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [(float(start), float(end)) for start, end in map(str.split, lines)]


class GatedBuild(Build):
    """A build whose commands run until their gate is removed."""

    def __init__(self, folder: Path, commands: int, *, old_make: bool = False) -> None:
        super().__init__(folder, commands, 0)
        self.commands, self.old_make = commands, old_make
        self._gate = folder / "gate"
        self._gate.mkdir()
        text = GATED.format(gate=self._gate, log=self.log)
        (folder / "compiler").write_text(text, encoding="utf-8")

    def begun(self) -> list[Path]:
        """What stands for each command that runs; it ends when that is removed."""
        return list(self._gate.iterdir())

    def end_one(self) -> None:
        ended = len(self.times())
        self.begun()[0].unlink()
        wait_until(lambda: len(self.times()) > ended, "the command does not end")

    def all_begun(self) -> bool:
        return len(self.times()) + len(self.begun()) == self.commands


def most_at_once(times: Sequence[tuple[float, float]]) -> int:
    """Count exactly; ends come before starts, for the clock has hundredths of a second only."""
    events = sorted([(start, 1) for start, _ in times] + [(end, -1) for _, end in times])
    most = now = 0
    for _, change in events:
        now += change
        most = max(most, now)
    return most


def wait_for(pool: Jobserver, builds: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until all builds have ended, giving back the slot of each."""
    running = list(builds)
    while running:
        for build in [build for build in running if build.poll() is not None]:
            running.remove(build)
            pool.give()
        time.sleep(0.015)
    assert [build.returncode for build in builds] == [0] * len(builds)
    for build in builds:
        assert build.stdout
        build.stdout.close()


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.005)


def wait_until_all_are_taken(slots: Jobserver) -> None:
    wait_until(lambda: not slots.free, f"{slots.free} slots are not taken")


def finish_one_by_one(pool: Jobserver, builds: Sequence["GatedBuild"], width: int) -> None:
    """End one command at a time, build after build; all slots must be used again after each.

    ninja asks for slots only when one of its own commands has ended. So while a build has commands
    to begin, the others keep theirs, and slots that it leaves are used by the next build.
    """
    processes = [build.start(makeflags(pool.path, old_make=build.old_make)) for build in builds]

    def running() -> int:
        return sum(len(build.begun()) for build in builds)

    def finish(build: GatedBuild) -> None:
        while build.begun():
            build.end_one()
            wait_until(lambda: running() == width or build.all_begun(), f"not {width} commands run")
            assert running() <= width

    wait_until(lambda: running() == width, f"not {width} commands run")
    for build, process in zip(builds, processes, strict=True):
        finish(build)
        wait_for(pool, [process])


def test_two_builds_use_all_slots_and_never_more(tmp_path: Path, slots: Jobserver) -> None:
    builds = [GatedBuild(tmp_path / name, 24) for name in ("one", "two")]
    assert all(slots.take(timeout=LONG) for _ in builds)
    finish_one_by_one(slots, builds, 4)
    times = [time for build in builds for time in build.times()]
    assert len(times) == 48
    assert most_at_once(times) <= 4
    assert slots.free == 4


def test_a_waiting_job_wins_a_slot_from_a_busy_build(tmp_path: Path, slots: Jobserver) -> None:
    assert slots.take()
    running = Build(tmp_path / "busy", 120, 0.05).start(makeflags(slots.path, old_make=False))
    wait_until_all_are_taken(slots)
    begin = time.monotonic()
    waits = []
    for _ in range(3):
        assert slots.take(timeout=LONG)
        waits.append(time.monotonic() - begin)
        begin = time.monotonic()
    print("waited", " ".join(f"{1000 * wait:.0f} ms" for wait in waits))
    for _ in range(3):
        slots.give()
    wait_for(slots, [running])
    assert slots.free == 4


def test_slots_of_a_killed_build_come_back_while_another_runs(
    tmp_path: Path, slots: Jobserver
) -> None:
    assert slots.take()
    killed = Build(tmp_path / "killed", 40, 30).start(makeflags(slots.path, old_make=False))
    wait_until_all_are_taken(slots)
    orphans = find_leaf_processes([killed.pid])
    killed.kill()
    killed.communicate()
    for orphan in orphans:
        with suppress(ProcessLookupError):
            os.kill(orphan.pid, signal.SIGKILL)
    slots.give()

    assert slots.take()
    other = Build(tmp_path / "other", 20, 0.2).start(makeflags(slots.path, old_make=False))
    recovered = 0
    while other.poll() is None:
        recovered += slots.recover(len(find_leaf_processes([other.pid])))
        time.sleep(0.05)
    wait_for(slots, [other])
    assert recovered >= 2  # one might have been the running job's, as far as can be seen
    assert recovered + slots.recover(0) == 3
    assert slots.free == 4


def test_a_carved_pool_limits_its_build(tmp_path: Path, slots: Jobserver) -> None:
    carved = slots.carve(tmp_path / "carved", 2)
    assert carved
    assert slots.free == 2
    build = GatedBuild(tmp_path / "narrow", 8)
    assert carved.take()
    finish_one_by_one(carved, [build], 2)
    carved.close()
    assert most_at_once(build.times()) == 2
    assert slots.free == 4


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_no_make_dies_of_the_flags_for_old_ones(tmp_path: Path, slots: Jobserver) -> None:
    said = subprocess.run(["make", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"GNU Make (\d+)\.(\d+)", said)
    rules = "all: a b\na b:\n\t@sleep 0.1\n\t@$(MAKE) --version >/dev/null\n"
    (tmp_path / "Makefile").write_text(rules, encoding="utf-8")

    def ends_with(makeflags: str) -> int:
        env = {**os.environ, "MAKEFLAGS": makeflags}
        return subprocess.run(["make"], cwd=tmp_path, env=env, check=False).returncode

    assert ends_with(makeflags(slots.path, old_make=True)) == 0
    new = version is not None and (int(version[1]), int(version[2])) >= (4, 4)
    assert (ends_with(makeflags(slots.path, old_make=False)) == 0) == new
    assert slots.free == 4


def test_ninja_finds_the_slots_in_the_flags_for_old_makes(tmp_path: Path, slots: Jobserver) -> None:
    build = GatedBuild(tmp_path / "build", 12, old_make=True)
    assert slots.take()
    finish_one_by_one(slots, [build], 4)
    assert most_at_once(build.times()) == 4
