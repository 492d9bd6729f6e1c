"""Timers after which Buildbot checks a queue; by itself it does so only on events."""

from functools import partial

from buildbot.process.builder import Builder
from twisted.internet.base import DelayedCall


class Wakeups:
    """At most one timer for each builder: the earliest requested one."""

    def __init__(self) -> None:
        self._timers: dict[str, DelayedCall] = {}

    def schedule(self, builder: Builder, when: float) -> None:
        """Let Buildbot check a builder's queue at a time or earlier."""
        timer, reactor = self._timers.get(builder.name), builder.master.reactor
        if timer is None or not timer.active():
            start = partial(builder.botmaster.maybeStartBuildsForBuilder, builder.name)
            self._timers[builder.name] = reactor.callLater(when - reactor.seconds(), start)
        elif when < timer.getTime():
            timer.reset(when - reactor.seconds())
