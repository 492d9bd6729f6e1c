"""Smoke-test packages: install each, and run all applicable tests in each environment."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from torchyard.errors import CheckError, HostError, TorchyardError
from torchyard.host.process import removed_later
from torchyard.host.process_tree import family_written, written_bytes
from torchyard.package.formats import FORMATS
from torchyard.smoke.attempt import attempt, not_run
from torchyard.smoke.hostile import Condition, conditions_of, hostile, uses_other_wheels
from torchyard.smoke.install import UnfitError, unmet_requirements
from torchyard.smoke.installation import Installation, same_files
from torchyard.smoke.installers import INSTALLERS
from torchyard.smoke.known_failures import judge, tell_unused
from torchyard.smoke.outcome import Outcome, Run, SmokeAttempt, Smoked
from torchyard.smoke.overlay import with_numpy
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard.smoke.request import Request
from torchyard.smoke.suite import IMPORT, Need, Test, built_in
from torchyard.smoke.surroundings import NO_SANDBOX, Environment, Surroundings, plain
from torchyard.terminal.progress import ProgressLine

Tell = Callable[[str], None]

_GOES_ON = {Outcome.PASSED, Outcome.KNOWN, Outcome.NOT_RUN}
"""After any other outcome of the import test, all tests would fail."""


def smoke_here(
    packages: Sequence[PackageUnderTest],
    request: Request,
    beside: Sequence[PackageUnderTest] = (),
    *,
    tell: Tell,
) -> list[Smoked]:
    """Test packages outside of a job, and warn that their code runs with the caller's rights."""
    tell(NO_SANDBOX)
    with removed_later("torchyard-smoke-") as scratch:
        return smoke_all(packages, request, beside, folder=scratch, tell=tell)


def smoke_all(
    packages: Sequence[PackageUnderTest],
    request: Request,
    beside: Sequence[PackageUnderTest] = (),
    *,
    folder: Path,
    tell: Tell,
) -> list[Smoked]:
    """Test packages in a folder; each may need the others, or packages in `beside`."""
    available = (*packages, *beside)
    return [
        smoke(package, request, available, folder / str(number), tell)
        for number, package in enumerate(packages)
    ]


def smoke(
    package: PackageUnderTest,
    request: Request,
    beside: Sequence[PackageUnderTest],
    folder: Path,
    tell: Tell,
) -> Smoked:
    """Test a package; `beside` are all packages that may be installed with it."""
    runs: list[Run] = []
    ways = INSTALLERS[package.format]
    installers = ways.installers(request)
    counter = _Counter(tell)
    first, *_ = request.environments
    for installer in installers:
        target = folder / installer
        target.mkdir(parents=True)
        try:
            install = ways.prepare(package, request, installer, beside)
        except UnfitError as error:
            tell(f"{package.file}: not run: {error}")
            idle = SmokeAttempt(test="install", outcome=Outcome.NOT_RUN, why=str(error))
            runs.append(Run(installer=installer, environment=first, attempts=(idle,)))
            continue
        counter.announce(f"installing {package.file} by {installer}")
        began = time.monotonic()
        line = ProgressLine(f"installing by {installer}", 0)
        try:
            with line, written_bytes(line.reach, family_written(os.getpid())):
                installation = install(target / "installed")
        except (HostError, CheckError) as error:
            failed = _judged(_built_in("install", began, error), package, first, request)
            tell(f"  install {failed.outcome}: {failed.why}")
            runs.append(Run(installer=installer, environment=first, attempts=(failed,)))
            continue
        done = _built_in("install", began)
        if request.made and same_files(request.made, installation):
            other = request.made.installer
            why = f"{other} installed the same files, so only their import is tested again"
            done = msgspec.structs.replace(done, why=why)
            request = msgspec.structs.replace(request, only=IMPORT, environments=(first,))
        request = msgspec.structs.replace(request, made=installation)
        runs += _Trier(package, request, installation, target, counter).runs(done)
        if counter.stopped:
            tell(f"  nothing else is tried: {counter.stopped}")
            break
    return Smoked(
        file=package.file,
        kind=package.format,
        name=package.name,
        version=package.version,
        compute=package.compute,
        sha256=package.sha256,
        runs=tell_unused(runs, package.title, request.known),
    )


def _judged(
    found: SmokeAttempt, package: PackageUnderTest, environment: Environment, request: Request
) -> SmokeAttempt:
    """Apply today's known failures to the outcome of a test."""
    return judge(found, package.title, environment, request.known, request.today)


def _built_in(test: str, began: float, error: TorchyardError | None = None) -> SmokeAttempt:
    """Return the report of a step that precedes all tests, as a test."""
    why = output = ""
    if error is not None:
        first = error.diagnostics[0]
        output = first.what.strip()
        *_, why = output.splitlines()
        why = why.strip(" └├─│.") + (f"; {first.hint}" if first.hint else "")
    return SmokeAttempt(
        test=test,
        outcome=Outcome.FAILED if error else Outcome.PASSED,
        seconds=round(time.monotonic() - began, 2),
        why=why,
        output=output,
    )


class _Counter:
    """Announces each test with its number; `stopped` is why no more run, or empty.

    The number of tests is known after an installer has finished.
    """

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.stopped = ""
        self._done = self._total = 0

    def expect(self, tests: int, environments: int) -> None:
        """Expect this number of tests in each remaining environment."""
        self._total = self._done + tests * environments

    def announce(self, what: str, tests: int = 0) -> None:
        """Announce a start, in the format of ninja's counts."""
        self._done += tests
        self.tell(f"[{self._done}/{self._total} tests] {what}" if self._total else what)


class _Trier:
    """Tests an installed package, in a folder for all files of its tests."""

    def __init__(
        self,
        package: PackageUnderTest,
        request: Request,
        installation: Installation,
        folder: Path,
        counter: _Counter,
    ) -> None:
        self._package = package
        self._request = request
        self._installation = installation
        self._folder = folder
        self._counter = counter
        self._count = 0
        self._broken: set[str] = set()

    def runs(self, installed: SmokeAttempt) -> Iterator[Run]:
        """Run the tests in each environment."""
        done = [installed]
        if FORMATS[self._package.format].IN_ENVIRONMENT:
            began = time.monotonic()
            met = _built_in("requirements", began, unmet_requirements(self._installation))
            done.append(_judged(met, self._package, self._request.environments[0], self._request))
        environments = self._request.environments
        apart = uses_other_wheels(self._package, self._installation)
        if not self._request.only and apart and Environment.HOSTILE in environments:
            environments += (Environment.SPLIT,)
        for number, environment in enumerate(environments):
            around = self._around(environment)
            done += self._attempts(around, len(environments) - number)
            yield Run(
                installer=self._installation.installer,
                environment=environment,
                python=self._installation.version,
                attempts=tuple(done),
                applied=around.applied,
                not_applied=around.missing,
            )
            done = []
            if self._counter.stopped:
                return

    def _around(self, environment: Environment) -> Surroundings:
        target = self._folder / environment
        conditions = self._conditions(environment)
        around = plain(self._installation, target, environment)
        return hostile(around, self._package, target, conditions)

    def _conditions(self, environment: Environment) -> frozenset[Condition]:
        return conditions_of(environment, self._package, self._installation)

    def _attempts(self, around: Surroundings, environments: int) -> Iterator[SmokeAttempt]:
        suites = built_in("any") if around.installation.modules else ()
        suites += built_in("torch") if around.installation.is_torch else ()
        if around.installation.is_extension and not self._request.tests:
            suites += built_in("with_torch")
        only, level = self._request.only, self._request.level
        own = self._installation.tests
        tests = [self._timed(test) for test in (*suites, *own, *self._request.tests)]
        tests = [t for t in tests if level.includes(t.level) and only in ("", t.name)]
        numpies, counter = [around], self._counter
        if around.installation.python and any(Need.NUMPY in test.needs for test in tests):
            numpies = with_numpy(around, self._folder / "numpy")
        tries = [
            (test, surroundings)
            for test in tests
            for surroundings in (numpies if Need.NUMPY in test.needs else [around])
        ]
        counter.expect(len(tries), environments)
        stopped = ""
        for test, surroundings in tries:
            if stopped:
                yield not_run(test, surroundings, stopped)
                continue
            found = self._attempt(test, surroundings)
            if test.name == IMPORT and found.outcome not in _GOES_ON:
                stopped = f"importing it {found.outcome}"
                if around.environment is Environment.CLEAN:
                    counter.stopped = stopped
            yield found

    def _timed(self, test: Test) -> Test:
        return msgspec.structs.replace(test, timeout=self._request.timeout or test.timeout)

    def _attempt(self, test: Test, around: Surroundings) -> SmokeAttempt:
        name = f"{test.name} ({around.variant})" if around.variant else test.name
        where = f"{around.installation.installer}, {around.environment}"
        self._counter.announce(f"{where}: {name}", tests=1)
        found = attempt(test, self._package, around, self._fresh_folder())
        if found.outcome.is_bad and around.environment == Environment.CLEAN:
            self._broken.add(test.name)
        elif found.outcome.is_bad and test.name not in self._broken and not around.variant:
            found = self._blame(test, found, self._conditions(around.environment))
        found = _judged(found, self._package, around.environment, self._request)
        if found.why and found.outcome is not Outcome.NOT_RUN:
            self._counter.tell(f"  {found.outcome}: {found.why}")
        return found

    def _blame(
        self, test: Test, failed: SmokeAttempt, conditions: Collection[Condition]
    ) -> SmokeAttempt:
        """Find the condition that alone makes a test fail."""
        if self._fails(test, ()):
            return failed
        for condition in sorted(conditions):
            if self._fails(test, (condition,)):
                why = f"{failed.why} (because of: {condition})"
                return msgspec.structs.replace(failed, why=why)
        return failed

    def _fails(self, test: Test, conditions: tuple[Condition, ...]) -> bool:
        around = plain(self._installation, self._folder / "blame")
        around = hostile(around, self._package, self._fresh_folder(), conditions)
        return attempt(test, self._package, around, self._fresh_folder()).outcome.is_bad

    def _fresh_folder(self) -> Path:
        """Return the path of a new folder."""
        self._count += 1
        return self._folder / str(self._count)
