"""What came out of trying a package, as plain values."""

from enum import StrEnum

from torchyard.model.values import Value


class Outcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    NOT_RUN = "not run"
    KNOWN = "known"
    """It failed, as the table of known failures says it would."""

    @property
    def is_bad(self) -> bool:
        return self in {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CRASHED}


class SmokeAttempt(Value, kw_only=True):
    """A test, and what came out. `why` is one line; `output` is the end of what it printed."""

    test: str
    outcome: Outcome
    seconds: float = 0.0
    about: str = ""
    variant: str = ""
    """What was there besides: `numpy 1.23.2`."""
    why: str = ""
    output: str = ""


class Run(Value, kw_only=True):
    """All tests in one environment, and what was done to it, or could not be."""

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
    runs: tuple[Run, ...]

    @property
    def tried(self) -> bool:
        """Whether anything could be done with it here."""
        attempts = (one for run in self.runs for one in run.attempts)
        return any(one.outcome is not Outcome.NOT_RUN for one in attempts)

    @property
    def bad(self) -> int:
        """How many tests did not end well."""
        return sum(one.outcome.is_bad for run in self.runs for one in run.attempts)
