"""Run a master's commands on a worker.

It writes the job specification of a command, and adds this machine's stages, its
compile cache, and its secrets.
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from buildbot_worker.commands.registry import commandRegistry
from buildbot_worker.commands.shell import WorkerShellCommand
from twisted.internet import defer

from torchyard.model.config import SandboxKind
from torchyard.model.job_spec import SPEC_FILE
from torchyard.model.recipe import Stage
from torchyard.run.permissions import ROOTS, SANDBOX, STAGES


def install_job_command(
    stages: Collection[Stage],
    secrets: Mapping[str, str],
    cache: str | None = None,
    sandbox: SandboxKind | None = None,
    roots: Iterable[Path] = (),
) -> None:
    """Let this worker run jobs of these stages only, and pass its secrets to `run` only.

    Secrets go through a pipe, as other users may read an environment, and Buildbot sends it to the
    master. `run` passes them to the jobs that need them. `cache` is this machine's compile cache
    for jobs whose project enables it; `sandbox` is required for every job; `roots` are available to
    jobs with a root.
    """
    offered = os.pathsep.join(map(str, roots))
    demands = {STAGES: ",".join(stages), SANDBOX: sandbox or "", ROOTS: offered}
    more = [*(("--cache", cache) if cache else ()), *(("--secrets",) if secrets else ())]

    class JobCommand(WorkerShellCommand):
        def start(self) -> defer.Deferred[None]:
            try:
                _write_spec(Path(self.args["workdir"]), self.args.pop("spec", ()))
            except OSError as error:  # such as a full disk: another worker may succeed
                update = [("header", f"the spec can't be written: {error}\n"), ("rc", -1)]
                self.protocol_command.send_update(update)
                return defer.succeed(None)
            self.args["env"] = {**(self.args.get("env") or {}), **demands}
            if more and _runs_a_job(self.args["command"]):
                self.args["command"] = [*self.args["command"], *more]
                self.args["initial_stdin"] = json.dumps(dict(secrets)) if secrets else None
            return super().start()

    commandRegistry["shell"] = JobCommand


def _runs_a_job(command: list[str]) -> bool:
    return command[:2] == ["torchyard", "run"] and command[2:3] != ["cancel"]


def _write_spec(folder: Path, blocks: Iterable[str]) -> None:
    """Write a job specification, if any, to the path where `torchyard` reads it."""
    if text := "".join(blocks):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SPEC_FILE).write_text(text, encoding="utf-8")
