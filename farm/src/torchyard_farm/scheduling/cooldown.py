"""Cooldown during which an idle machine declines jobs whose inputs are on other machines."""

_LONGEST = 2.0
"""Seconds in which the successors of a job are submitted: the longest cooldown ..."""

_SHARE = 0.05
"""... unless this share of the job's duration is shorter."""

_SHORTEST = 0.05
"""Seconds: a shorter cooldown is not worth it."""


class Cooldowns:
    """The end of each machine's cooldown. Buildbot asks for the next job as soon as one ends."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def start(self, machine: str, took: float, now: float) -> None:
        """Start the cooldown after a job that took a number of seconds."""
        length = min(_LONGEST, _SHARE * took)
        if length > _SHORTEST:
            self._until[machine] = now + length

    def is_cooling_down(self, machine: str, now: float) -> bool:
        return now < self._until.get(machine, 0.0)

    def latest_end(self, now: float) -> float:
        """Return when all cooldowns are over."""
        return max((now + _SHORTEST, *self._until.values()))
