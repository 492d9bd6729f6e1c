"""Job specifications are sent within the command that follows the job."""

from pathlib import Path

import pytest
from buildbot_worker.commands.registry import commandRegistry
from buildbot_worker.commands.shell import WorkerShellCommand
from twisted.internet import defer

from torchyard.model.job_spec import SPEC_FILE
from torchyard_farm.master.attempts.run_job import FollowCommand
from torchyard_farm.web.job_log import JobLog
from torchyard_farm.worker.commands import install_job_command

_MOST = 640 * 1024
"""Maximum bytes of a string in Buildbot's protocol."""


class Told:
    """Collects the updates of a worker's command."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, object]] = []

    def send_update(self, updates: list[tuple[str, object]]) -> None:
        self.updates += updates


def start(folder: Path, spec: list[str]) -> tuple[WorkerShellCommand, Told]:
    """Create a worker's command that fails to start once its specification is written."""
    command = object.__new__(commandRegistry["shell"])
    told = Told()
    command.args = {"workdir": str(folder), "spec": spec}
    command.protocol_command = told
    return command, told


@pytest.fixture(autouse=True)
def _entrusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(commandRegistry, "shell", commandRegistry["shell"])
    install_job_command((), {})


@pytest.mark.parametrize("spec", ["{}", '{"name":"é"}', "ü" * (2 * _MOST)])
def test_a_spec_arrives_whole_in_pieces_that_are_small_enough(tmp_path: Path, spec: str) -> None:
    sent = FollowCommand(JobLog(""), spec, workdir=".", command=["torchyard", "run"])
    blocks = sent.args["spec"]
    assert max(len(block.encode()) for block in blocks) < _MOST
    command, _ = start(tmp_path / "new", blocks)
    with pytest.raises(AttributeError, match="command_id"):  # the real command would start now
        command.start()
    assert (tmp_path / "new" / SPEC_FILE).read_text(encoding="utf-8") == spec


def test_a_spec_that_cannot_be_written_is_nobodys_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command, told = start(tmp_path / "file", ["{}"])
    ended = command.start()
    assert isinstance(ended, defer.Deferred)
    assert ("rc", -1) in told.updates  # retried, on another machine
