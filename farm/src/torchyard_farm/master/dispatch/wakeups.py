"""Lets Buildbot look at queues at some time: by itself it does so only when something happens."""

from typing import Any


class Wakeups:
    """One for each builder: the earliest that somebody asked for."""

    def __init__(self) -> None:
        self._timers: dict[str, Any] = {}

    def ask_again(self, builder: Any, when: float) -> None:
        """Let Buildbot look at a builder's queue at a time, or before."""
        timer, reactor = self._timers.get(builder.name), builder.master.reactor
        if timer is None or not timer.active():
            again = builder.botmaster.maybeStartBuildsForBuilder
            self._timers[builder.name] = reactor.callLater(
                when - reactor.seconds(), again, builder.name
            )
        elif when < timer.getTime():
            timer.reset(when - reactor.seconds())
