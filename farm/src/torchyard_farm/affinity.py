"""Who is asked first to go on with a job: the worker that was at it when the master stopped."""

from typing import NamedTuple

from torchyard_farm.attempts import Verdict


class Try(NamedTuple):
    """An earlier try of a job: by whom, and how it ended; a killed master does not know."""

    worker: int
    verdict: str | None


def may_take(worker: int, last: Try | None, since_start: float, grace: float) -> bool:
    """Whether a worker may take a job that was tried before.

    A job outlives the master, and is found again by the same worker; so for a while after the
    master's start nobody else gets it.
    """
    if last is None or since_start > grace:
        return True
    return worker == last.worker or last.verdict not in (None, Verdict.LATER)
