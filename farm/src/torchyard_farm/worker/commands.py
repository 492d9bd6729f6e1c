"""What a worker makes of the commands of its master.

It writes the order that comes with one, and adds what the machine may do, its compile cache, and
its secrets.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from buildbot_worker.commands.registry import commandRegistry
from buildbot_worker.commands.shell import WorkerShellCommand
from twisted.internet import defer

from torchyard.model.job_spec import ORDER
from torchyard.model.recipe import Stage
from torchyard.run.permissions import STAGES


def install_job_command(
    stages: Collection[Stage], secrets: Mapping[str, str], cache: str | None = None
) -> None:
    """Let this worker do jobs of these stages only, and give its secrets to none but `run`.

    They go through a pipe: an environment can be read by others, and Buildbot sends it to the
    master. `run` passes them on to those jobs that need them. `cache` is where this machine's jobs
    find what was compiled before, if their project has them look.
    """
    more = [*(("--cache", cache) if cache else ()), *(("--secrets",) if secrets else ())]

    class Command(WorkerShellCommand):
        def start(self) -> Any:
            try:
                _write_order(Path(self.args["workdir"]), self.args.pop("order", ()))
            except OSError as error:  # its disk is full, for example: another one may do better
                told = [("header", f"the order can't be written: {error}\n"), ("rc", -1)]
                return defer.succeed(self.protocol_command.send_update(told))
            self.args["env"] = {**(self.args.get("env") or {}), STAGES: ",".join(stages)}
            if more and self.args["command"][:2] == ["torchyard", "run"]:
                self.args["command"] = [*self.args["command"], *more]
                self.args["initial_stdin"] = json.dumps(dict(secrets)) if secrets else None
            return super().start()

    commandRegistry["shell"] = Command


def _write_order(folder: Path, blocks: Iterable[str]) -> None:
    """Write an order, if there is one, where `torchyard` will look for it."""
    if text := "".join(blocks):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ORDER).write_text(text, encoding="utf-8")
