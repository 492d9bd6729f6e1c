"""What `torchyard smoke` prints with `--json`."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from torchyard.checks.smoke.outcome import Outcome, Run, SmokeAttempt, Smoked
from torchyard.model.values import Reported


class AttemptDocument(Reported, kw_only=True):
    """A test and how it ended. `why` is one line; `output` is the end of what it printed."""

    test: str
    about: str
    variant: str | None
    outcome: Outcome
    seconds: float
    why: str | None
    output: str | None


class SmokeRunDocument(Reported, kw_only=True):
    """All tests in one environment; `applied` and `not_applied` are hostile conditions."""

    installer: str
    environment: str
    python: str | None
    applied: dict[str, str]
    not_applied: dict[str, str]
    tests: list[AttemptDocument]


class SmokedDocument(Reported, kw_only=True):
    """A package, and whether anything could be tried; if not, it does not count as working.

    It is not `decided` whether it works if nothing failed, and the machine was too busy for a test.

    `sha256` is that of the file; it is null for a package that was installed from a channel.
    """

    file: str
    sha256: str | None
    kind: str
    name: str
    package_version: str | None
    compute: str | None
    tried: bool
    decided: bool
    works: bool
    runs: list[SmokeRunDocument]


class SmokeDocument(Reported, kw_only=True):
    """`torchyard smoke --json`."""

    version: Literal[1] = 1
    level: str
    works: bool
    outcomes: dict[str, int]
    packages: list[SmokedDocument]


def smoke_document(packages: Sequence[Smoked], level: str) -> SmokeDocument:
    counted = Counter(one.outcome for p in packages for run in p.runs for one in run.attempts)
    return SmokeDocument(
        level=level,
        works=any(one.tried for one in packages)
        and not any(one.bad or not one.decided for one in packages),
        outcomes={outcome.value: counted[outcome] for outcome in Outcome},
        packages=[_package(package) for package in packages],
    )


def _package(package: Smoked) -> SmokedDocument:
    return SmokedDocument(
        file=package.file,
        sha256=package.sha256 or None,
        kind=package.kind,
        name=package.name,
        package_version=package.version or None,
        compute=package.compute or None,
        tried=package.tried,
        decided=package.decided,
        works=package.tried and package.decided and not package.bad,
        runs=[_run(run) for run in package.runs],
    )


def _run(run: Run) -> SmokeRunDocument:
    return SmokeRunDocument(
        installer=run.installer,
        environment=run.environment,
        python=run.python or None,
        applied=run.applied,
        not_applied=run.not_applied,
        tests=[_attempt(one) for one in run.attempts],
    )


def _attempt(one: SmokeAttempt) -> AttemptDocument:
    return AttemptDocument(
        test=one.test,
        about=one.about,
        variant=one.variant or None,
        outcome=one.outcome,
        seconds=one.seconds,
        why=one.why or None,
        output=one.output or None,
    )
