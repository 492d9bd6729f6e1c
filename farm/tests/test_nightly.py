"""What `farm nightly` plans; no master is needed for that."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from farm.tests.git_projects import Repository, make_project
from torchyard.host.git_fetch import resolve_commit
from torchyard_farm.scheduling.plans import Plans

pytestmark = pytest.mark.integration

FARM = """
file = "{file}"
[worker.w1]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
[nightly.main]
at = "02:00"
subset = "nightly"
"""


class Master:
    """The directory of a stopped master."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.file = make_project(folder / "project")
        self.folder = folder / "master"
        self.folder.mkdir()
        (self.folder / "farm.toml").write_text(FARM.format(file=self.file), encoding="utf-8")
        self.plans = Plans(self.folder)

    def run(
        self, *args: object, before: tuple[object, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        argv = [*map(str, before), sys.executable, "-m", "torchyard", *map(str, args)]
        return subprocess.run(argv, check=False, capture_output=True, text=True)

    def nightly(self, day: int, *before: object) -> str:
        """Run the command, after a prefix, and return its output or its message."""
        due = f"2026-11-{day}T02:00:00Z"
        done = self.run("farm", "nightly", self.folder, "main", "--due", due, before=before)
        assert done.returncode == 0, done.stderr
        return (done.stdout or done.stderr).strip()

    def build(self, plan: str) -> None:
        """Build a plan on this machine, and archive it."""
        source = self.plans.read(plan).source
        day = plan.partition(".dev")[2][:8]
        sets = (f"--set=source.commit={source}", f"--set=project.nightly={day}")
        done = self.run("build", "-f", self.file, "--subset", "nightly", *sets)
        assert done.returncode == 0, done.stderr
        self.plans.end(plan)


@pytest.mark.slow
def test_one_commit_a_night_and_each_only_once(tmp_path: Path) -> None:
    master = Master(tmp_path)
    first = master.repository.commit("of the 15th")
    plan = master.nightly(15)
    assert plan.startswith("demo-1.0.dev20261115-20261115T020000Z-")
    assert plan.endswith("@main")
    farmed = master.plans.read(plan)
    assert farmed.source == first
    assert {task.facts.get("python", "cp312") for task in farmed.tasks} == {"cp312"}

    # A repeated run, as after a crash, does nothing, even if there is a new commit.
    second = master.repository.commit("a minute later")
    assert master.nightly(15) == f"it is planned already: {plan}"

    # The next night has a new commit; the third has none, so there is nothing to do.
    next_plan = master.nightly(16)
    assert master.plans.read(next_plan).source == second
    master.build(next_plan)
    assert master.nightly(17) == f"{second[:12]} was built already: {next_plan}"

    # An unfinished build is tried again, with the day's own version.
    third = master.repository.commit("of the 18th")
    failed = master.nightly(18)
    again = master.nightly(19)
    assert master.plans.read(again).source == master.plans.read(failed).source == third
    assert again.startswith("demo-1.0.dev20261119-")


def test_another_commit_of_a_day_gets_the_next_build_number(tmp_path: Path) -> None:
    master = Master(tmp_path)
    plan = master.nightly(15)
    later = ("farm", "nightly", master.folder, "main", "--due")
    same = master.run(*later, "2026-11-15T09:00:00Z")
    assert f"is being built already: {plan}" in same.stderr
    second = master.repository.commit("another one")
    other = master.run(*later, "2026-11-15T09:00:00Z").stdout.strip()
    again = master.run(*later, "2026-11-15T10:00:00Z")
    assert f"is being built already: {other}" in again.stderr
    assert master.plans.open() == [plan, other]
    assert master.plans.read(other).source == second
    assert [build_numbers(master, one) for one in (plan, other)] == [{""}, {"1"}]


def build_numbers(master: Master, plan: str) -> set[str]:
    tasks = master.plans.read(plan).tasks
    return {task.text("build_number") for task in tasks if task.stage == "package"}


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bwrap here")
def test_all_that_is_written_is_in_the_masters_directory(tmp_path: Path) -> None:
    """So systemd can keep the rest from it: see farm/examples/systemd."""
    master = Master(tmp_path)
    (master.file.parent / ".torchyard/store").mkdir(parents=True)
    strict = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    plan = master.nightly(15, *strict, "--bind", master.folder, master.folder)
    assert master.plans.open() == [plan]


def test_a_plan_that_nobody_can_read_stops_no_nightly(tmp_path: Path) -> None:
    master = Master(tmp_path)
    torn = "demo-1.0-20261114T020000Z-3f09c1@main"
    master.plans.put(torn, "{")
    plan = master.nightly(15)
    assert master.plans.open() == [torn, plan]


def test_only_the_branch_of_that_very_name_counts(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    repository = Repository(folder)
    repository.branch("a/main")
    newest = repository.commit("on main alone")
    assert resolve_commit(repository.url, "main") == newest
    assert resolve_commit(repository.url, "a/main") != newest
    assert resolve_commit(repository.url, "nothing") is None
