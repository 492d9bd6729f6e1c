"""The results of smoke tests, as plain values."""

from enum import StrEnum

from torchyard.model.values import Value


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    NOT_DECIDED = "not decided"
    """It was ended before it had its time, as the machine was too busy."""
    NOT_RUN = "not run"
    KNOWN = "known"
    """It failed, and is in the table of known failures."""

    @property
    def is_bad(self) -> bool:
        return self in {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CRASHED}


class SmokeAttempt(Value, kw_only=True):
    """A test and its outcome. `why` is one line; `output` is the end of its output."""

    test: str
    outcome: Outcome
    seconds: float = 0.0
    about: str = ""
    variant: str = ""
    """What else was installed: `numpy 1.23.2`."""
    why: str = ""
    output: str = ""


class Run(Value, kw_only=True):
    """All tests in one environment, and the conditions that were applied, or could not be."""

    installer: str
    environment: str
    python: str = ""
    attempts: tuple[SmokeAttempt, ...]
    applied: dict[str, str] = {}
    not_applied: dict[str, str] = {}


class Smoked(Value, kw_only=True):
    """A package and all its runs."""

    file: str
    kind: str
    name: str
    version: str
    compute: str = ""
    sha256: str = ""
    """Of the file; empty for one that is published."""
    runs: tuple[Run, ...]

    @property
    def tried(self) -> bool:
        """Whether any test could be run here."""
        attempts = (one for run in self.runs for one in run.attempts)
        return any(one.outcome is not Outcome.NOT_RUN for one in attempts)

    @property
    def bad(self) -> int:
        """The number of tests with a bad outcome."""
        return sum(one.outcome.is_bad for run in self.runs for one in run.attempts)

    @property
    def decided(self) -> bool:
        """Whether every test that was begun had its time, or another one failed."""
        attempts = (one for run in self.runs for one in run.attempts)
        return bool(self.bad) or all(o.outcome is not Outcome.NOT_DECIDED for o in attempts)
