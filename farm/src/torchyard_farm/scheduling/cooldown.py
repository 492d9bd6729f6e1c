"""How long a machine whose job has just ended leaves jobs that belong elsewhere to others."""

_MOMENT = 2.0
"""Seconds in which what comes after a job is sent ..."""

_SHARE = 0.05
"""... for which a machine may rest, but no longer than this share of what the job took."""

_SHORT = 0.05
"""Seconds for which it is not worth to rest."""


class Cooldowns:
    """Until when machines rest: Buildbot asks for another job at once, when one has ended."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def end(self, machine: str, took: float, now: float) -> None:
        """A job ended on a machine, after so many seconds."""
        rest = min(_MOMENT, _SHARE * took)
        if rest > _SHORT:
            self._until[machine] = now + rest

    def is_resting(self, machine: str, now: float) -> bool:
        return now < self._until.get(machine, 0.0)

    def over(self, now: float) -> float:
        """When all will have rested."""
        return max((now + _SHORT, *self._until.values()))
