"""The command that follows a job: an order and events in, lines for people out."""

from typing import Any

from buildbot.process.remotecommand import RemoteShellCommand

from torchyard_farm.web.job_log import JobLog

LOG = "log"
"""What the job's own log is called in the web interface."""

_MOST = 16 << 20
"""Letters of a job's log that the master keeps: the whole one is with the result, in the store."""


_BLOCK = 1 << 17
"""Letters of an order in one piece: Buildbot's protocol refuses pieces of more than 640 kB."""


class FollowCommand(RemoteShellCommand):
    """`torchyard run --json`: what it prints is heard by a story, which tells it to the log.

    The worker writes the order before it begins (`worker/commands.py`): so there is one command.
    """

    def __init__(self, story: JobLog, order: str, **options: Any) -> None:
        super().__init__(**options)
        self.args["order"] = [order[i : i + _BLOCK] for i in range(0, len(order), _BLOCK)]
        self._story = story
        self._room = _MOST

    async def add_stdout_lines(self, data: str, is_flushed: bool) -> None:  # noqa: FBT001 - Buildbot's
        before = self._story.now
        lines = self._story.hear(data)
        if self._story.now != before:
            self.step.updateSummary()
        if lines:
            await super().add_stdout_lines(lines, is_flushed)

    async def addToLog(self, logname: str, data: str) -> None:
        if self._room > 0:
            self._room -= len(data)
            cut = "" if self._room > 0 else "… the whole log is kept with the result\n"
            await super().addToLog(logname, data + cut)
