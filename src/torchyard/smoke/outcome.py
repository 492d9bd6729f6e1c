"""The results of smoke tests, as plain values."""

from enum import StrEnum

import msgspec
from msgspec.structs import force_setattr

from torchyard.model.values import Reported


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    NOT_DECIDED = "not decided"
    """It was ended before its time limit, as the machine was too busy."""
    NOT_RUN = "not run"
    KNOWN = "known"
    """It failed, as the table of known failures allows."""

    @property
    def is_bad(self) -> bool:
        return self in {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CRASHED}


class SmokeAttempt(Reported, kw_only=True):
    """A test and its outcome. `why` is one line; `output` is the end of its output."""

    test: str
    outcome: Outcome
    seconds: float = 0.0
    about: str = ""
    variant: str = ""
    """Additionally installed packages: `numpy 1.23.2`."""
    why: str = ""
    output: str = ""


class Run(Reported, kw_only=True):
    """All tests in an environment, and its applied and impossible conditions."""

    installer: str
    environment: str
    python: str = ""
    attempts: tuple[SmokeAttempt, ...] = msgspec.field(name="tests")
    applied: dict[str, str] = {}
    not_applied: dict[str, str] = {}


class Smoked(Reported, kw_only=True):
    """A package and all its runs.

    It is `tried` if any test could run here. It is `decided` if every started test had its time, or
    another one failed. It `works` if it is tried, is decided, and nothing failed.
    """

    file: str
    kind: str
    name: str
    version: str = msgspec.field(name="package_version")
    compute: str = ""
    sha256: str = ""
    """The file's digest; empty for a published package."""
    runs: tuple[Run, ...]
    tried: bool = False
    decided: bool = False
    works: bool = False

    def __post_init__(self) -> None:
        outcomes = {attempt.outcome for run in self.runs for attempt in run.attempts}
        is_bad = any(outcome.is_bad for outcome in outcomes)
        decided = is_bad or Outcome.NOT_DECIDED not in outcomes
        tried = bool(outcomes - {Outcome.NOT_RUN})
        force_setattr(self, "tried", tried)
        force_setattr(self, "decided", decided)
        force_setattr(self, "works", tried and decided and not is_bad)
