"""Known failures that are accepted for a limited time: tables with a reason and an end date."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import msgspec

from torchyard.config.decode import decode_as
from torchyard.config.document import Document
from torchyard.errors import ConfigError, Diagnostic
from torchyard.host.files import data_path, read_text
from torchyard.model.matrix import matches
from torchyard.model.values import Value
from torchyard.smoke.outcome import Outcome, Run, SmokeAttempt

FILE = "known.toml"


class Known(Value, kw_only=True):
    """A test that is known to fail; all fields except the reason and the date are globs."""

    test: str
    reason: str
    until: date
    """The last day on which the failure is accepted."""
    package: str = "*"
    """A glob for name and version: `torch-2.13.*`."""
    environment: str = "*"

    def is_about(self, attempt: SmokeAttempt, package: str, environment: str) -> bool:
        return (
            matches(attempt.test, self.test)
            and matches(package, self.package)
            and matches(environment, self.environment)
        )


class _Table(Value, kw_only=True):
    known: tuple[Known, ...] = ()


def load_known(tests: Path | None) -> tuple[Known, ...]:
    """Return the known failures of torchyard and of a test folder."""
    own = tests / FILE if tests else None
    rows = _read(Path(data_path(f"smoke/{FILE}")))
    return rows + (_read(own) if own and own.exists() else ())


def _read(path: Path) -> tuple[Known, ...]:
    document = Document(str(path), read_text(str(path)))
    rows = decode_as(document, _Table).known
    hint = "say why this is accepted: the report shows it"
    wrong = [
        Diagnostic(
            "a known failure needs a reason", document.span(("known", index, "reason")), hint
        )
        for index, row in enumerate(rows)
        if not row.reason.strip()
    ]
    if wrong:
        raise ConfigError.of(wrong)
    return rows


def judge(
    attempt: SmokeAttempt, package: str, environment: str, known: tuple[Known, ...], today: date
) -> SmokeAttempt:
    """Mark a failure as known if a row matches; the row that expires last counts."""
    fitting = [row for row in known if row.is_about(attempt, package, environment)]
    if not fitting or not attempt.outcome.is_bad:
        return attempt
    row = max(fitting, key=lambda row: row.until)
    if row.until < today:
        why = f"{attempt.why}; it was a known failure until {row.until}: {row.reason}"
        return msgspec.structs.replace(attempt, why=why)
    why = f"{row.reason} (until {row.until}): {attempt.why}"
    return msgspec.structs.replace(attempt, outcome=Outcome.KNOWN, why=why)


def tell_unused(runs: Sequence[Run], package: str, known: tuple[Known, ...]) -> tuple[Run, ...]:
    """Add a note for each row whose tests all pass now."""
    noted = list(runs)
    for row in known:
        about = [
            (index, number)
            for index, run in enumerate(noted)
            for number, done in enumerate(run.attempts)
            if done.outcome is not Outcome.NOT_RUN and row.is_about(done, package, run.environment)
        ]
        if about and all(noted[i].attempts[p].outcome is Outcome.PASSED for i, p in about):
            index, number = about[0]
            attempts = list(noted[index].attempts)
            why = f"passes now: remove it from the known failures ({row.reason})"
            attempts[number] = msgspec.structs.replace(attempts[number], why=why)
            noted[index] = msgspec.structs.replace(noted[index], attempts=tuple(attempts))
    return tuple(noted)
