"""What a worker adds to the commands of its master: what it may do, and the secrets that it has."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from buildbot_worker.commands.registry import commandRegistry
from buildbot_worker.commands.shell import WorkerShellCommand

from torchyard.model.recipe import Stage
from torchyard.run.trust import STAGES


def entrust(stages: Collection[Stage], secrets: Mapping[str, str]) -> None:
    """Let this worker do jobs of these stages only, and give its secrets to none but `run`.

    They go through a pipe: an environment can be read by others, and Buildbot sends it to the
    master. `run` passes them on to those jobs that need them.
    """

    class Command(WorkerShellCommand):
        def start(self) -> Any:
            self.args["env"] = {**(self.args.get("env") or {}), STAGES: ",".join(stages)}
            if secrets and self.args["command"][:2] == ["torchyard", "run"]:
                self.args["command"] = [*self.args["command"], "--secrets"]
                self.args["initial_stdin"] = json.dumps(dict(secrets))
            return super().start()

    commandRegistry["shell"] = Command
