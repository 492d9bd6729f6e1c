"""What the end of a job's process means, and how often a job is tried."""

from enum import StrEnum

from torchyard.errors import ElsewhereError


class Verdict(StrEnum):
    """What comes after a try of a job."""

    GOOD = "good"
    BAD = "bad"
    AGAIN = "again"
    """Not its fault: tried once more, elsewhere if possible. This try counts."""
    LATER = "later"
    """Nobody's fault: the master stops. It goes on afterwards, and this try does not count."""
    ENDED = "ended"
    """Somebody wanted it to end."""


def judge(code: int | None, *, interrupted: bool, stopping: bool) -> Verdict:
    """Judge an exit code; negative if a signal killed the process, None if nobody knows."""
    if interrupted:
        return Verdict.LATER if stopping else Verdict.ENDED
    if code == 0:
        return Verdict.GOOD
    if code is None or code < 0 or code == ElsewhereError.exit_code:
        return Verdict.AGAIN
    return Verdict.BAD


def is_given_up(failures: int, attempts: int) -> bool:
    """Whether a job that was tried in vain so often is not tried any more."""
    return failures >= attempts
