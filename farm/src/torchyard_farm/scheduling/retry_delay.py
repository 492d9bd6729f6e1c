"""The delay before a machine may retry a job."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from torchyard_farm.scheduling.attempts import (
    AttemptRecord,
    AttemptVerdict,
    RetryLimits,
    final_verdict,
)


class JobOffer(NamedTuple):
    """When a job is offered, and `able`: the connected machines that can do it."""

    able: Collection[str]
    now: float
    since_start: float


def retry_delay(
    machine: str, attempts: Sequence[AttemptRecord], offer: JobOffer, limits: RetryLimits
) -> float:
    """Return the seconds until a machine may start a job; 0 if it may now.

    A job outlives its connection and the master, and its machine finds it again. So
    that machine comes first; one that failed it comes last.
    """
    if not attempts:
        return 0.0
    last = attempts[-1]
    since = offer.now - last.ended
    match final_verdict(attempts, limits):
        case AttemptVerdict.QUARANTINED:  # unless one of the machines returns with it
            return max(0.0, limits.back - since)
        case None:
            pass
        case _:
            return 0.0
    match last.verdict:
        case None | AttemptVerdict.LATER:
            pause, since = (0.0 if machine == last.machine else limits.grace), offer.since_start
        case AttemptVerdict.LOST | AttemptVerdict.CUT:
            lost = (AttemptVerdict.LOST, AttemptVerdict.CUT)
            losses = sum(attempt.verdict in lost for attempt in attempts)
            pause = limits.pause_after(losses - (machine == last.machine))
        case _:
            failed = [tried.machine for tried in attempts if tried.verdict is AttemptVerdict.AGAIN]
            pause = limits.pause_after(len(failed))
            if machine in failed and not set(failed).issuperset(offer.able):
                pause = max(pause, limits.avoid)
    return max(0.0, pause - since)
