from buildbot_worker.commands.shell import WorkerShellCommand

commandRegistry: dict[str, type[WorkerShellCommand]]
