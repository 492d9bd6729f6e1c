"""Install packages into fresh environments, and run tests there."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from torchyard.checks.smoke.surroundings import NO_SANDBOX
from torchyard.config.credentials import take_credentials
from torchyard.errors import ElsewhereError, HostError, SmokeError, UsageError
from torchyard.host.process import removed_later
from torchyard.workspace.clock import current_date
from torchyard.workspace.locations import channel_url, installer_url, read_channel

if TYPE_CHECKING:
    from torchyard.checks.smoke.package_under_test import PackageUnderTest
    from torchyard.checks.smoke.request import Request
    from torchyard.publish.select import Selection
    from torchyard.reports.smoke.document import SmokeDocument


def smoke_packages(
    packages: Sequence[str | Path],
    *,
    level: Literal["import", "ops", "full"] = "ops",
    tests: str | Path | None = None,
    environment: Literal["clean", "hostile", "both"] = "both",
    installer: Literal["pip", "uv", "both"] = "both",
    channels: Sequence[str] = (),
    python: str | Path | None = None,
    timeout: int | None = None,
    on_line: Callable[[str], None] = lambda _line: None,
) -> "SmokeDocument":
    """Install packages into fresh environments, run tests there, and return what they found.

    Secret variables are taken out of this process's environment, so that no test sees them.

    Args:
        packages: Wheels, conda packages and libtorch zips; each may need the others.
        level: How much to try; each level has the tests of those before it.
        tests: Directory with tests of your own.
        environment: What is around the package.
        installer: What installs wheels.
        channels: Where conda packages find what they need, besides the packages that are given.
        python: Interpreter for wheels; one that fits unless it is given.
        timeout: Seconds for each test, in place of its own.
        on_line: Is called with each line of progress.
    """
    from torchyard.checks.smoke.package_under_test import read_package_under_test

    take_credentials()
    request = smoke_request(
        level=level,
        tests=tests,
        environment=environment,
        installer=installer,
        channels=channels,
        python=python,
        timeout=timeout,
    )
    found = [read_package_under_test(Path(package)) for package in packages]
    return smoke_here(found, request, on_line=on_line)


def smoke_request(
    *,
    level: str = "ops",
    tests: str | Path | None = None,
    environment: str = "both",
    installer: str = "both",
    channels: Sequence[str] = (),
    indexes: Sequence[str] = (),
    python: str | Path | None = None,
    timeout: int | None = None,
) -> "Request":
    """Return which tests to run on each package, and in which environments."""
    from torchyard.checks.smoke.installation import Installer
    from torchyard.checks.smoke.known_failures import load_known
    from torchyard.checks.smoke.request import Request
    from torchyard.checks.smoke.suite import Level, read_suite
    from torchyard.checks.smoke.surroundings import Environment

    folder = Path(tests) if tests else None
    return Request(
        level=Level(level),
        environments=(
            (Environment.CLEAN, Environment.HOSTILE)
            if environment == "both"
            else (Environment(environment),)
        ),
        installers=(
            (Installer.UV, Installer.PIP) if installer == "both" else (Installer(installer),)
        ),
        channels=tuple(channels),
        indexes=tuple(indexes),
        python=str(python or ""),
        tests=read_suite(folder) if folder else (),
        today=current_date(),
        known=load_known(folder),
        timeout=timeout,
    )


def published_packages(
    channel: str, selection: "Selection", file: str, *, url: str | None, every: bool
) -> list["PackageUnderTest"]:
    """Return packages of a channel; only the newest versions, unless `every` one is wanted."""
    from torchyard.publish.select import choose
    from torchyard.publish.smoke_targets import newest, packages_under_test

    address = _index_url(url or installer_url(channel_url(channel, file)))
    reader = read_channel(channel, file)
    chosen = choose(reader, reader.head(), selection)
    return list(packages_under_test(chosen if every else newest(chosen), address))


def _index_url(url: str) -> str:
    from torchyard.index.address import parse_index_url

    try:
        return parse_index_url(url)
    except ValueError as error:
        hint = "--url https://… says where users find the channel"
        raise UsageError(str(error), hint=hint) from error


def smoke_here(
    packages: Sequence["PackageUnderTest"],
    request: "Request",
    beside: Sequence["PackageUnderTest"] = (),
    *,
    on_line: Callable[[str], None],
) -> "SmokeDocument":
    """Test packages in no job, and say that their code runs with the rights of the caller."""
    on_line(NO_SANDBOX)
    with removed_later("torchyard-smoke-") as scratch:
        return smoke_all(packages, request, beside, folder=scratch, on_line=on_line)


def smoke_all(
    packages: Sequence["PackageUnderTest"],
    request: "Request",
    beside: Sequence["PackageUnderTest"] = (),
    *,
    folder: Path,
    on_line: Callable[[str], None],
) -> "SmokeDocument":
    """Test packages in a folder, each of which may need the others, or those in `beside`."""
    from torchyard.checks.smoke.smoke import smoke
    from torchyard.reports.smoke.document import smoke_document

    available = (*packages, *beside)
    found = [
        smoke(one, request, available, folder / str(number), on_line)
        for number, one in enumerate(packages)
    ]
    return smoke_document(found, request.level)


def refuse_failures(document: "SmokeDocument", *, every: bool = False) -> None:
    """Raise SmokeError if a package does not work, and HostError if none, or not `every`, ran.

    Raise ElsewhereError if a test was ended as the machine was too busy: it may pass later.
    """
    idle = [package.file for package in document.packages if not package.tried]
    failed = [one.file for one in document.packages if one.tried and one.decided and not one.works]
    undecided = [one.file for one in document.packages if not one.decided]
    if failed:
        msg = f"{', '.join(failed)} {'do' if len(failed) > 1 else 'does'} not work"
        raise SmokeError(msg, hint="the report above has what each test said")
    if undecided:
        msg = f"it is not decided whether {', '.join(undecided)} can be used: the machine is busy"
        hint = "try again when it has less to do, or give tests more time by --timeout"
        raise ElsewhereError(msg, hint=hint)
    if idle and (every or len(idle) == len(document.packages)):
        msg = f"{', '.join(idle)} can't be tried here"
        hint = "install a Python that fits, or give it by --python; the system has to fit, too"
        raise HostError(msg, hint=hint)
