"""Verdicts on ended attempts, and limits for retries.

An attempt that ends with its connection is not yet a failure, as the job continues. If
its machine reconnects and still has the job, only the connection was cut; if not, the job may have
taken the machine down.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from torchyard.errors import MISSING, ElsewhereError, StoppedError, StoreError


class AttemptVerdict(StrEnum):
    """How an attempt of a job ended."""

    GOOD = "good"
    BAD = "bad"
    AGAIN = "again"
    """Not the job's fault: retried, on another machine if possible. The attempt counts."""
    LATER = "later"
    """The master shuts down: the job resumes afterwards, and the attempt does not count."""
    ENDED = "ended"
    """Cancelled by a user."""
    LOST = "lost"
    """The connection was lost, and the machine has not returned with the job."""
    CUT = "cut"
    """The connection was lost, and the machine returned with the job."""
    GIVEN_UP = "given up"
    """Too many attempts."""
    QUARANTINED = "quarantined"
    """Too many machines were lost with it to run it on another one."""


_NOT_ITS_FAULT = (ElsewhereError.exit_code, StoppedError.exit_code)
"""The exit code of a job that was stopped because its machine shuts down."""

FINAL_VERDICTS = (AttemptVerdict.GIVEN_UP, AttemptVerdict.QUARANTINED)
"""Verdicts of the farm, not of the job: a user must investigate, and then press Rebuild."""


class AttemptRecord(NamedTuple):
    """An attempt of a job: its machine, verdict and end; a killed master leaves no verdict."""

    machine: str
    verdict: AttemptVerdict | None
    ended: float = 0.0


class RetryLimits(NamedTuple):
    """How often a job is attempted; times are in seconds.

    `pause` is the time between two attempts. It doubles with each attempt, up to `longest`.
    """

    attempts: int = 3
    deaths: int = 3
    losses: int = 30
    pause: float = 15.0
    longest: float = 600.0
    avoid: float = 300.0
    """How long a machine that failed a job leaves it to other, perhaps busy machines."""
    back: float = 120.0
    """How long a machine may take to reconnect."""
    grace: float = 75.0
    """How long after the master's start a job waits for the machine that ran it: workers
    try to connect once a minute."""

    def pause_after(self, attempts: int) -> float:
        return min(self.pause * 2.0 ** (attempts - 1), self.longest) if attempts else 0.0


def judge_exit(
    code: int | None, *, reason: str = "", lost: bool, unwanted: bool, stopping: bool
) -> AttemptVerdict:
    """Return the verdict on an exit code: negative for a signal, None if unknown.

    `reason` is the job's own reason for its failure; `lost` is about the connection, `unwanted`
    about a job that a user cancelled, `stopping` about the master.
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


def attempt_number(attempts: Sequence[AttemptRecord]) -> int:
    """Return the number of the next attempt.

    A job continues without its connection and its master: an attempt that ended with either
    does not count.
    """
    return 1 + sum(attempt.verdict is AttemptVerdict.AGAIN for attempt in attempts)


def final_verdict(attempts: Sequence[AttemptRecord], limits: RetryLimits) -> AttemptVerdict | None:
    """Return why a job is not attempted again, or None; a cancellation precedes other reasons."""
    verdicts = [attempt.verdict for attempt in attempts]
    if AttemptVerdict.ENDED in verdicts:
        return AttemptVerdict.ENDED
    if verdicts.count(AttemptVerdict.LOST) >= limits.deaths:
        return AttemptVerdict.QUARANTINED
    losses = verdicts.count(AttemptVerdict.LOST) + verdicts.count(AttemptVerdict.CUT)
    if attempt_number(attempts) > limits.attempts or losses >= limits.losses:
        return AttemptVerdict.GIVEN_UP
    return None


def explain_verdict(verdict: AttemptVerdict, attempts: Sequence[AttemptRecord]) -> str:
    """Return why a job is not attempted again, and what to do."""
    count = len(attempts)
    lost = (attempt.machine for attempt in attempts if attempt.verdict is AttemptVerdict.LOST)
    names = ", ".join(dict.fromkeys(lost))
    match verdict:
        case AttemptVerdict.QUARANTINED:
            return f"quarantined: machines were lost with it ({names}); check them, then Rebuild"
        case AttemptVerdict.GIVEN_UP:
            return (
                f"given up after {count} attempts, none its own fault; see their logs, then Rebuild"
            )
        case _:
            return "cancelled by a user"
