"""What nobody waits for goes to the log."""

from twisted.python import log
from twisted.python.failure import Failure


def note(why: Failure) -> None:
    """Write a failure into the master's log."""
    log.err(why)
