"""Who is asked first to go on with a job that was tried before."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from torchyard_farm.scheduling.attempts import Attempt, AttemptVerdict, RetryLimits, final_verdict


class Offer(NamedTuple):
    """Where and when a job is offered: `others` are all machines that are there and can do it."""

    others: Collection[str]
    now: float
    since_start: float


def retry_delay(machine: str, tries: Sequence[Attempt], scene: Offer, limits: RetryLimits) -> float:
    """How many seconds a machine leaves a job to others, or to nobody; 0 if it may take it.

    A job outlives its connection and the master, and is found again by the machine that runs it:
    so that one is asked first. One that it failed on is asked last.
    """
    if not tries:
        return 0.0
    last = tries[-1]
    since = scene.now - last.ended
    match final_verdict(tries, limits):
        case AttemptVerdict.QUARANTINED:  # unless one of the machines comes back with it
            return max(0.0, limits.back - since)
        case None:
            pass
        case _:
            return 0.0
    match last.verdict:
        case None | AttemptVerdict.LATER:
            pause, since = (0.0 if machine == last.machine else limits.grace), scene.since_start
        case AttemptVerdict.LOST | AttemptVerdict.CUT:
            losses = sum(one.verdict in (AttemptVerdict.LOST, AttemptVerdict.CUT) for one in tries)
            pause = limits.pause_after(losses - (machine == last.machine))
        case _:
            failed = [one.machine for one in tries if one.verdict is AttemptVerdict.AGAIN]
            pause = limits.pause_after(len(failed))
            if machine in failed and not set(failed).issuperset(scene.others):
                pause = max(pause, limits.avoid)
    return max(0.0, pause - since)
