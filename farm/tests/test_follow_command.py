"""What a master can make a worker do: run a job, whose specification it sends, or end it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from buildbot_worker.bot import Worker
from buildbot_worker.commands.registry import commandRegistry
from buildbot_worker.commands.shell import WorkerShellCommand
from buildbot_worker.pb import WorkerForBuilderPb
from twisted.python.failure import Failure

from torchyard.model.job_spec import SPEC_FILE, JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard_farm.master.attempts.run_job import FollowCommand, RequestCommand
from torchyard_farm.scheduling.job_request import (
    LOG,
    REQUEST,
    EndRequest,
    JobRequest,
    RunRequest,
    spec_blocks,
)
from torchyard_farm.web.job_log import JobLog
from torchyard_farm.worker.commands import OwnBuilder, install_job_command

_MOST = 640 * 1024
"""Maximum bytes of a string in Buildbot's protocol."""

DIGEST = "ab" * 32
JOB = ["--spec", SPEC_FILE, "--work", "../../work"]
RUN = ["torchyard", "run", "--detach", "--json", *JOB]


def spec_of(text: str = "") -> str:
    task = Task(
        id="core:demo-1.0/linux-x86_64/cpu-mkl",
        stage=Stage.CORE,
        stage_revision=1,
        scope="linux-x86_64/cpu-mkl",
        recipe="pytorch",
        fingerprint=DIGEST,
        settings={"text": text},
    )
    return msgspec.json.encode(JobSpec(tasks=(task,))).decode()


class Connection:
    """Collects the updates of a worker's command."""

    def __init__(self, folder: Path) -> None:
        self.worker_basedir = str(folder)
        self.updates: list[tuple[str, object]] = []

    def send_update(self, updates: list[tuple[str, object]]) -> None:
        self.updates += updates


class Started(NamedTuple):
    """A worker's command after it was started."""

    command: WorkerShellCommand
    updates: list[tuple[str, object]]

    @property
    def refusal(self) -> str:
        """The text of its refusal; "" if a process would have been started."""
        assert not self.updates or ("rc", -1) in self.updates
        return "".join(str(text) for kind, text in self.updates if kind == "header")


def start(
    folder: Path,
    request: JobRequest,
    secrets: Mapping[str, str] = {},
    args: Mapping[str, object] = {},
) -> Started:
    """Start a worker's command as Buildbot does, up to the process itself."""
    install_job_command((Stage.CORE,), secrets, "/srv/cache", "bwrap")
    sent = RequestCommand(request)
    command = object.__new__(commandRegistry["shell"])
    command.args = {**sent.args, "workdir": str(folder / "w1/builder"), **args}
    command.protocol_command = connection = Connection(folder / "w1")
    with suppress(AttributeError):  # Buildbot's own would start the process now
        command.start()
        assert connection.updates
    return Started(command, connection.updates)


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    before = dict(commandRegistry)
    yield
    commandRegistry.clear()
    commandRegistry.update(before)


@pytest.mark.parametrize("text", ["", "é", "ü" * (2 * _MOST)])
def test_a_spec_arrives_whole_in_pieces_that_are_small_enough(tmp_path: Path, text: str) -> None:
    spec = spec_of(text)
    request = RunRequest(spec=spec_blocks(spec), store="s3://farm/store", copies="20 GB")
    sent = FollowCommand(JobLog(""), request).args[REQUEST]
    assert max(len(block.encode()) for block in sent["spec"]) < _MOST
    started = start(tmp_path, request)
    assert (tmp_path / "w1/builder" / SPEC_FILE).read_text(encoding="utf-8") == spec
    args = started.command.args
    store = ["--copies", "20 GB", "--store", "s3://farm/store"]
    assert args["command"] == [*RUN, *store, "--cache", "/srv/cache"]
    assert args["logfiles"] == {LOG: f"../../work/core-{DIGEST[:16]}/log"}


def test_a_spec_that_cannot_be_written_is_nobodys_fault(tmp_path: Path) -> None:
    (tmp_path / "w1").mkdir()
    (tmp_path / "w1/builder").touch()
    request = RunRequest(spec=(spec_of(),), store="s3://farm/store")
    assert "can't be started" in start(tmp_path, request).refusal  # retried, on another machine


def test_only_a_job_gets_secrets_and_not_in_its_variables(tmp_path: Path) -> None:
    secrets = {"KEY": "hunter22"}
    job = start(tmp_path, RunRequest(spec=(spec_of(),), store="s"), secrets).command.args
    assert job["command"][-1] == "--secrets"
    assert json.loads(str(job.pop("initial_stdin"))) == secrets
    end = start(tmp_path, EndRequest(), secrets).command.args
    assert end["command"] == ["torchyard", "run", "cancel", *JOB]
    assert "hunter22" not in str([job, end])


HOSTILE = {
    "command": ["sh", "-c", "id"],
    "env": {"PYTHONPATH": "/home/evil", "TORCHYARD_SANDBOX": "none", "PATH": "/home/evil"},
    "initial_stdin": "evil",
    "logfiles": {"stolen": "/etc/shadow"},
    "interruptSignal": "KILL",
    "logEnviron": True,
    "usePTY": True,
    "maxTime": 1,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("request_", [RunRequest(spec=(spec_of(),), store="s"), EndRequest()])
def test_a_master_chooses_nothing_of_the_command(
    tmp_path: Path, name: str, request_: JobRequest
) -> None:
    usual = start(tmp_path, request_).command.args
    attacked = start(tmp_path, request_, args={name: HOSTILE[name]}).command.args
    assert attacked == usual
    assert usual["env"]["TORCHYARD_SANDBOX"] == "bwrap"
    assert "PYTHONPATH" not in usual["env"]


@pytest.mark.parametrize(
    "place", ["/srv", "w1/../../elsewhere", "w1/builder/../../w2", "w1", "w1/builder/deep"]
)
def test_a_master_chooses_no_directory_outside_of_the_worker_s(tmp_path: Path, place: str) -> None:
    request = RunRequest(spec=(spec_of(),), store="s")
    assert "outside" in start(tmp_path, request, args={"workdir": str(tmp_path / place)}).refusal
    (tmp_path / "w1/link").mkdir(parents=True)
    (tmp_path / "w1/link/up").symlink_to(tmp_path)
    assert (
        "outside"
        in start(tmp_path, request, args={"workdir": str(tmp_path / "w1/link/up")}).refusal
    )
    assert not list(tmp_path.rglob(SPEC_FILE))


def test_a_master_makes_no_directory_outside_of_the_worker_s(tmp_path: Path) -> None:
    address = "tcp:host=127.0.0.1:port=1"  # is never connected
    worker = Worker(None, None, "w", "", str(tmp_path), keepalive=0, connection_string=address)
    worker.bot.WorkerForBuilder = OwnBuilder
    failures: list[Failure] = []
    for place in ("../other", str(tmp_path.with_name("other")), ".", ""):
        made = worker.bot.remote_setBuilderList([(f"at {place}", place)])
        made.addErrback(failures.append)
        assert "outside of the worker's directory" in str(failures.pop().value)
    assert not tmp_path.with_name("other").exists()
    builders: dict[str, WorkerForBuilderPb] = {}
    worker.bot.remote_setBuilderList([("core", "core")]).addCallback(builders.update)
    assert builders["core"].basedir == str(tmp_path / "core")


@pytest.mark.parametrize(
    "sent",
    [
        None,
        {},
        "run",
        {"type": "shell", "command": ["id"]},
        {"type": "run", "spec": [], "store": "s"},
        {"type": "run", "spec": ["{}"], "store": "s"},
        {"type": "run", "spec": [spec_of().replace(DIGEST, "../../../../etc")], "store": "s"},
        {"type": "run", "spec": [spec_of()], "store": "s", "env": {"A": "b"}},
    ],
)
def test_another_request_is_refused(tmp_path: Path, sent: object) -> None:
    assert "can't be started" in start(tmp_path, EndRequest(), args={REQUEST: sent}).refusal


def test_buildbot_s_other_commands_are_gone(tmp_path: Path) -> None:
    start(tmp_path, EndRequest())
    assert list(commandRegistry) == ["shell"]
