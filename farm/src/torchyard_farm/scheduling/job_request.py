"""What a master asks of a worker: to run a job, or to end one.

A request has no command: the worker makes it, so that a master can't run another one.
"""

from torchyard.model.values import Value

LOG = "log"
"""Name of the job's own log in the web interface."""

REQUEST = "request"
"""The argument of Buildbot's shell command that has the request."""

_BLOCK = 1 << 17
"""Maximum characters of a specification's string: Buildbot's protocol refuses over 640 kB."""


class RunRequest(Value, kw_only=True, tag="run"):
    """Run a job: its specification in pieces, its store, and how much of results is kept."""

    spec: tuple[str, ...]
    store: str
    copies: str = ""


class EndRequest(Value, tag="end"):
    """End the job whose specification was last sent to the same directory."""


JobRequest = RunRequest | EndRequest


def spec_blocks(spec: str) -> tuple[str, ...]:
    """Return a specification in pieces that Buildbot's protocol accepts."""
    return tuple(spec[i : i + _BLOCK] for i in range(0, len(spec), _BLOCK))
