"""The remote command that follows a job: a job specification and events in, readable lines out."""

from buildbot.process.remotecommand import RemoteShellCommand

from torchyard_farm.web.job_log import JobLog

LOG = "log"
"""Name of the job's own log in the web interface."""

_LOG_LIMIT = 16 << 20
"""Characters of a job's log that the master keeps; the store has the whole log."""

_BLOCK = 1 << 17
"""Characters of a specification in one string: Buildbot's protocol refuses more than 640 kB."""


class FollowCommand(RemoteShellCommand):
    """Runs `torchyard run --json`, and writes its events to the log as a `JobLog` renders them.

    The specification goes with the command, and the worker writes it (`worker/commands.py`).
    """

    def __init__(self, job_log: JobLog, spec: str, **options: object) -> None:
        super().__init__(**options)
        self.args["spec"] = [spec[i : i + _BLOCK] for i in range(0, len(spec), _BLOCK)]
        self._job_log = job_log
        self._room = _LOG_LIMIT

    async def add_stdout_lines(self, data: str, is_flushed: bool) -> None:  # noqa: FBT001 - Buildbot's
        before = self._job_log.activity
        lines = self._job_log.feed(data)
        if self._job_log.activity != before:
            self.step.updateSummary()
        if lines:
            await super().add_stdout_lines(lines, is_flushed)

    async def addToLog(self, logname: str, data: str) -> None:
        if self._room > 0:
            self._room -= len(data)
            cut = "" if self._room > 0 else "… the whole log is kept with the result\n"
            await super().addToLog(logname, data + cut)
