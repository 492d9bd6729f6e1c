"""Run what a master asks for on a worker: a job, or its end, and nothing else.

The command, its variables and the log that is followed are this machine's: its stages, its
sandbox, its compile cache and its secrets.
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from buildbot_worker.commands.registry import commandRegistry
from buildbot_worker.commands.shell import WorkerShellCommand
from buildbot_worker.pb import WorkerForBuilderPb
from twisted.internet import defer

from torchyard.model.config import SandboxKind
from torchyard.model.job_spec import SPEC_FILE, JobSpec, short_name
from torchyard.model.recipe import Stage
from torchyard.run.permissions import ROOTS, SANDBOX, STAGES
from torchyard_farm.scheduling.job_request import LOG, REQUEST, JobRequest, RunRequest
from torchyard_farm.scheduling.worker_status import JOBS_FOLDER

_WORK = f"../../{JOBS_FOLDER}"
_JOB = ("--spec", SPEC_FILE, "--work", _WORK)
"""Commands run in a directory for each worker and builder, which has one job at a time. All jobs of
a machine run in one directory, `_WORK`."""


class WorkerRules(NamedTuple):
    """What each job of a machine gets: variables, options of `run`, and secrets."""

    variables: Mapping[str, str]
    options: tuple[str, ...] = ()
    secrets: Mapping[str, str] = {}


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
    jobs with a root. Buildbot's other commands, which read, write and remove files, are dropped.
    """
    offered = os.pathsep.join(map(str, roots))
    demands = {STAGES: ",".join(stages), SANDBOX: sandbox or "", ROOTS: offered}
    more = (*(("--cache", cache) if cache else ()), *(("--secrets",) if secrets else ()))
    rules = WorkerRules({**demands, "COLUMNS": "1000"}, more, secrets)  # lines are not wrapped

    class JobCommand(WorkerShellCommand):
        requiredArgs = ["workdir", REQUEST]  # noqa: RUF012 - Buildbot's interface

        def start(self) -> defer.Deferred[None]:
            base = Path(self.protocol_command.worker_basedir)
            try:
                self.args = _command(self.args, base, rules)
            except (OSError, ValueError) as error:  # such as a full disk: another may succeed
                update = [("header", f"the job can't be started: {error}\n"), ("rc", -1)]
                self.protocol_command.send_update(update)
                return defer.succeed(None)
            return super().start()

    commandRegistry.clear()
    commandRegistry["shell"] = JobCommand


def _command(args: Mapping[str, object], base: Path, rules: WorkerRules) -> dict[str, object]:
    """Return Buildbot's arguments for a request; write the specification of a job to run.

    Raise ValueError for another request, or for a directory that is not the worker's.
    """
    folder = Path(str(args["workdir"]))
    _refuse_other_place(folder, base)
    request = msgspec.convert(args[REQUEST], JobRequest)
    common = {
        "workdir": str(folder),
        "env": rules.variables,
        "logEnviron": False,
        "interruptSignal": "TERM",
    }
    if not isinstance(request, RunRequest):
        return {**common, "command": ["torchyard", "run", "cancel", *_JOB]}
    text = "".join(request.spec)
    task = msgspec.json.decode(text, type=JobSpec).task
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SPEC_FILE).write_text(text, encoding="utf-8")
    copies = ("--copies", request.copies) if request.copies else ()
    options = ("--detach", "--json", *_JOB, *copies, "--store", request.store, *rules.options)
    return {
        **common,
        "command": ["torchyard", "run", *options],
        "logfiles": {LOG: f"{_WORK}/{short_name(task.stage, task.fingerprint)}/log"},
        "initial_stdin": json.dumps(dict(rules.secrets)) if rules.secrets else None,
    }


class OwnBuilder(WorkerForBuilderPb):
    """A builder with a directory in that of the worker; Buildbot makes any that a master names."""

    def setBuilddir(self, builddir: str) -> None:
        base = Path(self.bot.basedir)
        _refuse_other_place(base / builddir, base)
        super().setBuilddir(builddir)


def _refuse_other_place(folder: Path, base: Path) -> None:
    """Raise ValueError unless a directory is one of a worker's own: `_WORK` is relative to it."""
    if folder.resolve().parent != base.resolve():
        msg = f"`{folder}` is outside of the worker's directory, or not directly in it"
        raise ValueError(msg)
