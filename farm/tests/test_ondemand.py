"""Machines that are started on demand, and shut themselves down."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from farm.tests.farms import LONG, TrialFarm, wait_until
from farm.tests.test_faults import begun, long_core, sleeper
from tests.support.helpers import WORKS, make_project
from tests.support.services import LOOPBACK
from torchyard.host.detached import create_record
from torchyard_farm.worker.process import IdleTimer

EXAMPLES = Path(__file__).parents[1] / "examples" / "on-demand"

_START = """#!/bin/sh
echo start >> {folder}/starts
if test -e {folder}/cloud.pid && kill -0 $(cat {folder}/cloud.pid) 2>/dev/null; then exit 1; fi
setsid {python} -m torchyard farm worker {folder}/$MACHINE --master {master} --name $MACHINE \\
    --slots 2 --idle '{idle} s' --password-file secrets/$MACHINE </dev/null >/dev/null 2>&1 &
echo $! > {folder}/cloud.pid
"""


class OnDemandFarm(TrialFarm):
    """A farm whose only machine is started by a script, as a process of its own."""

    def __init__(self, folder: Path, file: Path, idle: int) -> None:
        super().__init__(folder, file, "sqlite:///state.sqlite", ("cloud",), 2)
        self._idle = idle

    def write(self) -> None:
        toml = self.master / "farm.toml"
        line = 'start = ["./start-machine"]\n'
        toml.write_text(f"{toml.read_text(encoding='utf-8')}{line}", encoding="utf-8")
        script = self.master / "start-machine"
        python, master = sys.executable, f"{LOOPBACK}:{self.port}"
        text = _START.format(folder=self.folder, python=python, master=master, idle=self._idle)
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)

    def starts(self) -> int:
        path = self.folder / "starts"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0

    def machine(self) -> psutil.Process | None:
        """Return the machine's process, if it runs."""
        path = self.folder / "cloud.pid"
        if path.exists() and (text := path.read_text(encoding="utf-8").strip()):
            try:
                process = psutil.Process(int(text))
                return process if str(self.folder) in " ".join(process.cmdline()) else None
            except psutil.NoSuchProcess:
                return None
        return None

    def end_machine(self) -> None:
        if (process := self.machine()) is not None:
            process.kill()


def start(stack: ExitStack, folder: Path, text: str, idle: int) -> OnDemandFarm:
    file = make_project(folder / "project", text)
    farm = stack.enter_context(OnDemandFarm(folder / "farm", file, idle))
    stack.callback(farm.end_machine)
    farm.write()
    farm.start_master()
    return farm


@pytest.mark.integration
@pytest.mark.slow
def test_a_machine_comes_for_a_plan_and_goes_when_there_is_nothing_to_do(
    stack: ExitStack, tmp_path: Path
) -> None:
    farm = start(stack, tmp_path, WORKS, idle=15)
    assert farm.starts() == 0
    farm.wait_done(farm.submit())
    assert len({build["workerid"] for build in farm.builds()}) == 2  # one start for both workers
    wait_until(lambda: farm.machine() is None, LONG, farm.log)
    assert farm.starts() == 1
    text = farm.file.read_text(encoding="utf-8").replace("cat {core}", "echo; cat {core}")
    farm.file.write_text(text, encoding="utf-8")
    farm.wait_done(farm.submit())  # it is started again
    assert farm.starts() == 2
    assert {one["results"] for one in farm.buildsets()} == {0}


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_machine_is_not_ended_while_its_job_runs(
    stack: ExitStack, tmp_path: Path, how: str
) -> None:
    """Neither when the master stops nor by itself, however long no build follows the job."""
    farm = start(stack, tmp_path, long_core(tmp_path, 40), idle=5)
    plan = farm.submit()
    wait_until(lambda: begun(tmp_path) == 1 and bool(sleeper(tmp_path)), LONG, farm.log)
    machine = farm.machine()
    getattr(farm, how)("master")
    assert sleeper(tmp_path)
    farm.start_master()
    farm.wait_done(plan)
    assert begun(tmp_path) == 1
    assert machine is not None
    wait_until(lambda: not machine.is_running(), LONG, farm.log)


def test_a_machine_is_busy_as_long_as_a_job_runs(tmp_path: Path) -> None:
    idleness = IdleTimer(tmp_path, 10, now=0)
    lock = create_record(tmp_path / "core-1.detached")
    assert not idleness.is_over(100)
    os.close(lock)
    assert not idleness.is_over(109)
    assert idleness.is_over(111)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir()))
def test_examples_are_good_shell(name: str) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("there is no shellcheck: apt-get install shellcheck")
    subprocess.run(["shellcheck", EXAMPLES / name], check=True)


_CLOUD = """#!/bin/sh
echo "$(basename $0) $*" >> calls
case "$*" in
    *describe-instances*) cat running ;;
    *run-instances*) for word; do case $word in file:*) cat ${word#file://} ;; esac; done > sent ;;
    create*) cat > sent ;;
    *start*) test ! -s running ;;
esac
"""
"""Stand-in for the commands of three clouds: prints its arguments and its input."""


@pytest.mark.parametrize(
    ("name", "program", "asks"),
    [
        ("ec2", "aws", "aws ec2 run-instances"),
        ("kubernetes", "kubectl", "kubectl create -f -"),
        ("libvirt", "virsh", "virsh --connect qemu:///system start w1"),
    ],
)
def test_examples_start_the_machine_that_they_are_told(
    tmp_path: Path, name: str, program: str, asks: str
) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "w1").write_text("a password\n", encoding="utf-8")
    (tmp_path / "running").touch()
    cloud = tmp_path / program
    cloud.write_text(_CLOUD, encoding="utf-8")
    cloud.chmod(0o755)
    known = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MACHINE": "w1"}
    subprocess.run([EXAMPLES / name], check=True, cwd=tmp_path, env=known)
    assert asks in (tmp_path / "calls").read_text(encoding="utf-8")
    if name != "libvirt":
        sent = (tmp_path / "sent").read_text(encoding="utf-8")
        assert "--idle" in sent
        assert "--name w1" in sent or '{name: NAME, value: "w1"}' in sent
        assert ("a password" in sent) == (name == "ec2")


@pytest.mark.parametrize(("name", "program"), [("ec2", "aws"), ("libvirt", "virsh")])
def test_examples_start_no_second_machine(tmp_path: Path, name: str, program: str) -> None:
    (tmp_path / "running").write_text("i-0123\n", encoding="utf-8")
    cloud = tmp_path / program
    cloud.write_text(_CLOUD, encoding="utf-8")
    cloud.chmod(0o755)
    known = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MACHINE": "w1"}
    done = subprocess.run([EXAMPLES / name], check=False, cwd=tmp_path, env=known)
    assert done.returncode == 1
    assert not (tmp_path / "sent").exists()
