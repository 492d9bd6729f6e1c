"""What the end of a try means, and how often a job is tried.

A try that ends with its connection is nobody's failure at first: the job goes on without it. If
its machine comes back and still has the job, the connection alone was cut; if not, the job may be
what took the machine down.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from torchyard.errors import MISSING, ElsewhereError, StoppedError, StoreError


class AttemptVerdict(StrEnum):
    """What became of a try of a job."""

    GOOD = "good"
    BAD = "bad"
    AGAIN = "again"
    """Not its fault: tried once more, elsewhere if possible. This try counts."""
    LATER = "later"
    """Nobody's fault: the master stops. It goes on afterwards, and this try does not count."""
    ENDED = "ended"
    """Somebody wanted it to end."""
    LOST = "lost"
    """The connection was lost, and the machine has not come back with the job."""
    CUT = "cut"
    """The connection was lost, and the machine came back with the job."""
    GIVEN_UP = "given up"
    """Tried too often."""
    QUARANTINED = "quarantined"
    """It took down too many machines to be let near another one."""


_NOT_ITS_FAULT = (ElsewhereError.exit_code, StoppedError.exit_code)
"""Stopped by nobody here: the machine shuts down."""

FINAL_VERDICTS = (AttemptVerdict.GIVEN_UP, AttemptVerdict.QUARANTINED)
"""Verdicts of farms, not of jobs: a person has to look, and then to press Rebuild."""


class Attempt(NamedTuple):
    """A try of a job: on which machine, how it ended, and when; a killed master does not know."""

    machine: str
    verdict: AttemptVerdict | None
    ended: float = 0.0


class RetryLimits(NamedTuple):
    """How often a job is tried; times are in seconds.

    `pause` is the time between two tries. It doubles with each of them, up to `longest`.
    """

    attempts: int = 3
    deaths: int = 3
    losses: int = 30
    pause: float = 15.0
    longest: float = 600.0
    avoid: float = 300.0
    """How long a machine that failed a job leaves it to others, who may be busy."""
    back: float = 120.0
    """How long a machine may take to come back after its connection was lost."""
    grace: float = 75.0
    """How long after the master's start a job waits for the machine that has begun it: workers
    look for a master once a minute."""

    def pause_after(self, tries: int) -> float:
        return min(self.pause * 2.0 ** (tries - 1), self.longest) if tries else 0.0


def judge_exit(
    code: int | None, *, reason: str = "", lost: bool, unwanted: bool, stopping: bool
) -> AttemptVerdict:
    """Judge an exit code; negative if a signal killed the process, None if nobody knows.

    `reason` is the job's own word for why it failed, `lost` is the connection, `unwanted` a job
    that a person ends, `stopping` the master.
    """
    if unwanted:
        return AttemptVerdict.ENDED
    if code == 0:
        return AttemptVerdict.GOOD
    is_missing = code == StoreError.exit_code and reason == MISSING
    if code is not None and code > 0 and code not in _NOT_ITS_FAULT and not is_missing:
        return AttemptVerdict.BAD
    if stopping:
        return AttemptVerdict.LATER
    return AttemptVerdict.LOST if lost else AttemptVerdict.AGAIN


def attempt_number(tries: Sequence[Attempt]) -> int:
    """Which attempt the next try of a job belongs to.

    A job goes on without its connection and its master: a try that ends with one of them is none.
    """
    return 1 + sum(one.verdict is AttemptVerdict.AGAIN for one in tries)


def final_verdict(tries: Sequence[Attempt], limits: RetryLimits) -> AttemptVerdict | None:
    """Whether a job is not tried any more, and why; a person who wanted it to end comes first."""
    verdicts = [one.verdict for one in tries]
    if AttemptVerdict.ENDED in verdicts:
        return AttemptVerdict.ENDED
    if verdicts.count(AttemptVerdict.LOST) >= limits.deaths:
        return AttemptVerdict.QUARANTINED
    losses = verdicts.count(AttemptVerdict.LOST) + verdicts.count(AttemptVerdict.CUT)
    if attempt_number(tries) > limits.attempts or losses >= limits.losses:
        return AttemptVerdict.GIVEN_UP
    return None


def explain_verdict(verdict: AttemptVerdict, tries: Sequence[Attempt]) -> str:
    """Tell people why a job is not tried any more, and what to do."""
    count = len(tries)
    names = ", ".join(
        dict.fromkeys(one.machine for one in tries if one.verdict is AttemptVerdict.LOST)
    )
    match verdict:
        case AttemptVerdict.QUARANTINED:
            return f"quarantined: machines were lost with it ({names}); look at them, then Rebuild"
        case AttemptVerdict.GIVEN_UP:
            return f"given up after {count} tries, none its own fault; see their logs, then Rebuild"
        case _:
            return "ended by a person"
