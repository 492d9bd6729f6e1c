"""Trying packages: install each, and run all tests that fit, in each environment."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from torchyard.checks.smoke.attempt import attempt
from torchyard.checks.smoke.conda import install_conda
from torchyard.checks.smoke.hostile import hostile
from torchyard.checks.smoke.install import (
    install_wheel,
    interpreter_of,
    unmet_requirements,
    unzip,
)
from torchyard.checks.smoke.installation import Installation, Installer
from torchyard.checks.smoke.known import Known, judge
from torchyard.checks.smoke.numpy import with_numpy
from torchyard.checks.smoke.outcome import Attempt, Outcome, Run, Smoked
from torchyard.checks.smoke.specimen import Specimen
from torchyard.checks.smoke.suite import Level, Need, Test, built_in
from torchyard.checks.smoke.surroundings import Environment, Surroundings, clean
from torchyard.errors import HostError
from torchyard.model.values import Value
from torchyard.package.contents import Kind

Tell = Callable[[str], None]


class Request(Value, kw_only=True):
    """How packages are to be tried. Installers are for wheels; the others have only one each."""

    level: Level = Level.OPS
    environments: tuple[Environment, ...] = tuple(Environment)
    installers: tuple[Installer, ...] = (Installer.PIP, Installer.UV)
    channels: tuple[str, ...] = ()
    python: str = ""
    tests: tuple[Test, ...] = ()
    known: tuple[Known, ...] = ()
    timeout: int | None = None
    """Seconds for each test, in place of its own."""


def smoke(
    specimen: Specimen, request: Request, beside: Sequence[Specimen], folder: Path, tell: Tell
) -> Smoked:
    """Try one package; `beside` are all those that may be installed with it."""
    runs: list[Run] = []
    for installer in _installers(specimen, request):
        place = folder / installer
        place.mkdir(parents=True)
        runs += _Trier(specimen, request, place, tell).runs(installer, beside)
    return Smoked(
        file=specimen.file,
        kind=specimen.kind.value,
        name=specimen.name,
        version=specimen.version,
        compute=specimen.compute,
        runs=tuple(runs),
    )


def _installers(specimen: Specimen, request: Request) -> tuple[Installer, ...]:
    match specimen.kind:
        case Kind.WHEEL:
            return request.installers
        case Kind.CONDA:
            return (Installer.CONDA,)
        case Kind.ZIP:
            return (Installer.UNZIP,)


class _Trier:
    """One package by one installer, in a folder of its own."""

    def __init__(self, specimen: Specimen, request: Request, folder: Path, tell: Tell) -> None:
        self._specimen = specimen
        self._request = request
        self._folder = folder
        self._tell = tell
        self._count = 0

    def runs(self, installer: Installer, beside: Sequence[Specimen]) -> Iterator[Run]:
        """Install the package once, and try it in each environment."""
        began = time.monotonic()
        self._tell(f"{self._specimen.file}: installing by {installer}")
        done: list[Attempt] = []
        try:
            installation = self._install(installer, beside)
        except HostError as error:
            done.append(_built_in("install", began, str(error)))
            first, *_ = self._request.environments
            yield Run(installer=installer, environment=first, attempts=tuple(done))
            return
        done.append(_built_in("install", began))
        if self._specimen.kind == Kind.WHEEL:
            began = time.monotonic()
            done.append(_built_in("requirements", began, unmet_requirements(installation)))
        for environment in self._request.environments:
            around = self._around(environment, installation)
            for one in done:
                self._report(one, around)
            done += self._attempts(around)
            yield Run(
                installer=installer,
                environment=environment,
                python=installation.version,
                attempts=tuple(done),
                applied=around.applied,
                not_applied=around.missing,
            )
            done = []

    def _install(self, installer: Installer, beside: Sequence[Specimen]) -> Installation:
        place = self._folder / "installed"
        match installer:
            case Installer.CONDA:
                return install_conda(self._specimen, beside, self._request.channels, place)
            case Installer.UNZIP:
                return unzip(self._specimen, place)
            case Installer.PIP | Installer.UV:
                wanted = Path(self._request.python) if self._request.python else None
                python = interpreter_of(self._specimen, wanted)
                return install_wheel(self._specimen, python, installer, place)

    def _around(self, environment: Environment, installation: Installation) -> Surroundings:
        around = clean(installation, self._folder / environment)
        if environment == Environment.HOSTILE:
            return hostile(around, self._specimen, self._folder / environment)
        return around

    def _attempts(self, around: Surroundings) -> Iterator[Attempt]:
        suites = built_in("any") if around.installation.modules else ()
        suites += built_in("torch") if around.installation.is_torch else ()
        tests = [self._timed(one) for one in (*suites, *self._request.tests)]
        tests = [one for one in tests if self._request.level.includes(one.level)]
        numpies = [around]
        if around.installation.python and any(Need.NUMPY in test.needs for test in tests):
            numpies = with_numpy(around, self._folder / "numpy")
        for test in tests:
            for place in numpies if Need.NUMPY in test.needs else [around]:
                yield self._attempt(test, place)

    def _timed(self, test: Test) -> Test:
        return msgspec.structs.replace(test, timeout=self._request.timeout or test.timeout)

    def _attempt(self, test: Test, around: Surroundings) -> Attempt:
        self._count += 1
        place = self._folder / "tests" / str(self._count)
        found = attempt(test, self._specimen, around, place)
        today = datetime.now(UTC).date()
        found = judge(found, self._specimen.title, around.environment, self._request.known, today)
        self._report(found, around)
        return found

    def _report(self, one: Attempt, around: Surroundings) -> None:
        name = f"{one.test} ({one.variant})" if one.variant else one.test
        why = f": {one.why}" if one.why else ""
        took = f" in {one.seconds:.1f} s" if one.seconds else ""
        self._tell(f"  {around.environment}: {name} {one.outcome}{took}{why}")


def _built_in(test: str, began: float, why: str = "") -> Attempt:
    """What comes before all tests, and is told as one."""
    lines = why.splitlines()
    return Attempt(
        test=test,
        outcome=Outcome.FAILED if why else Outcome.PASSED,
        seconds=round(time.monotonic() - began, 2),
        why=lines[-1] if lines else "",
        output=why,
    )
