"""What nobody waits for goes to the log; and how calls end whose connection is lost."""

from twisted.internet import error
from twisted.python import log
from twisted.python.failure import Failure
from twisted.spread import pb

GONE = (error.ConnectionLost, error.ConnectionDone, pb.PBConnectionLost, pb.DeadReferenceError)


def note(why: Failure) -> None:
    """Write a failure into the master's log."""
    log.err(why)
