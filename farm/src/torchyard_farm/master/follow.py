"""The command that follows a job: events in, lines for people out."""

from typing import Any

from buildbot.process.remotecommand import RemoteShellCommand

from torchyard_farm.pages.story import Story

LOG = "log"
"""What the job's own log is called in the web interface."""

_MOST = 16 << 20
"""Letters of a job's log that the master keeps: the whole one is with the result, in the store."""


class FollowCommand(RemoteShellCommand):
    """`torchyard run --json`: what it prints is heard by a story, which tells it to the log."""

    def __init__(self, story: Story, **options: Any) -> None:
        super().__init__(**options)
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
