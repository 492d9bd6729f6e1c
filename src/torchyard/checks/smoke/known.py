"""Failures that are known and accepted for a time: tables with a reason and a last day."""

import tomllib
from datetime import date
from pathlib import Path

import msgspec

from torchyard.checks.smoke.outcome import Attempt, Outcome
from torchyard.errors import UsageError
from torchyard.host.files import data_path, read_text
from torchyard.model.matrix import matches
from torchyard.model.values import Value

FILE = "known.toml"


class Known(Value, kw_only=True):
    """A test that is known to fail; all but the reason and the day are globs."""

    test: str
    reason: str
    until: date
    """The last day on which it may fail."""
    package: str = "*"
    """Against the name and version: `torch-2.13.*`."""
    environment: str = "*"

    def is_about(self, attempt: Attempt, package: str, environment: str) -> bool:
        return (
            matches(attempt.test, self.test)
            and matches(package, self.package)
            and matches(environment, self.environment)
        )


class _Table(Value, kw_only=True):
    known: tuple[Known, ...] = ()


def load_known(tests: Path | None) -> tuple[Known, ...]:
    """What torchyard knows, and what a folder of tests says in its own table."""
    own = tests / FILE if tests else None
    rows = _read(Path(data_path(f"smoke/{FILE}")))
    return rows + (_read(own) if own and own.exists() else ())


def _read(path: Path) -> tuple[Known, ...]:
    try:
        return msgspec.convert(tomllib.loads(read_text(str(path))), _Table).known
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        msg = f"the table of known failures `{path}` is malformed: {error}"
        hint = "each [[known]] has test, reason and until; package and environment if need be"
        raise UsageError(msg, hint=hint) from error


def judge(
    attempt: Attempt, package: str, environment: str, known: tuple[Known, ...], today: date
) -> Attempt:
    """Let a known failure pass, and tell when a row is of no more use."""
    for row in known:
        if not row.is_about(attempt, package, environment):
            continue
        if attempt.outcome == Outcome.PASSED:
            said = f"passes now: remove it from the known failures ({row.reason})"
            return msgspec.structs.replace(attempt, why=said)
        if attempt.outcome.is_bad and row.until < today:
            said = f"{attempt.why}; it was a known failure until {row.until}: {row.reason}"
            return msgspec.structs.replace(attempt, why=said)
        if attempt.outcome.is_bad:
            said = f"{row.reason} (until {row.until}): {attempt.why}"
            return msgspec.structs.replace(attempt, outcome=Outcome.KNOWN, why=said)
    return attempt
