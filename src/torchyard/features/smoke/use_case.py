"""Install packages into fresh environments, and run tests there."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from torchyard.config.credentials import take_credentials
from torchyard.errors import UsageError
from torchyard.features.smoke.report import SmokeReport
from torchyard.host.signals import exit_on_sigterm
from torchyard.index.address import parse_index_url
from torchyard.publish.select import choose, parse_selection
from torchyard.publish.smoke_targets import newest, packages_under_test
from torchyard.smoke.package_under_test import PackageUnderTest, read_package_under_test
from torchyard.smoke.request import smoke_request
from torchyard.smoke.smoke import smoke_here
from torchyard.workspace.arguments import refuse_given
from torchyard.workspace.clock import current_date
from torchyard.workspace.locations import channel_url, installer_url, read_channel
from torchyard.workspace.progress import ignore_line


def smoke_packages(
    packages: Sequence[str | Path] = (),
    *,
    source: str | None = None,
    url: str | None = None,
    indexes: Sequence[str] = (),
    variants: Sequence[str] = (),
    files: Sequence[str] = (),
    file: str = "torchyard.toml",
    level: Literal["import", "ops", "full"] = "ops",
    tests: str | Path | None = None,
    environment: Literal["clean", "hostile", "both"] = "both",
    installer: Literal["pip", "uv", "both"] = "both",
    channels: Sequence[str] = (),
    python: str | Path | None = None,
    timeout: int | None = None,
    on_line: Callable[[str], None] = ignore_line,
) -> SmokeReport:
    """Install packages into fresh environments, run tests there, and return the findings.

    Secret variables are removed from this process's environment, so that no test sees them.

    Args:
        packages: Wheels, conda packages and libtorch zips, each of which may need the others; or
            requirements, if there is a `source`.
        source: A channel to install from, like users; by default the newest of everything.
        url: The address of that channel for users.
        indexes: Indexes for requirements that the channel lacks.
        variants: Globs; only these variants of the channel.
        files: Globs; only files of the channel with these names.
        file: The configuration that names the channel.
        level: How thoroughly to test; each level includes those before it.
        tests: Directory with your own tests.
        environment: The environment of the package.
        installer: The installer of wheels.
        channels: Channels for requirements of conda packages, besides the given packages.
        python: Interpreter for wheels; by default one that fits.
        timeout: Seconds for each test, instead of its own.
        on_line: Called with each line of progress.
    """
    take_credentials()
    request = smoke_request(
        current_date(),
        level=level,
        tests=tests,
        environment=environment,
        installer=installer,
        channels=channels,
        indexes=indexes,
        python=python,
        timeout=timeout,
    )
    if source is not None:
        selection = parse_selection(tuple(map(str, packages)) or ("*",), variants, files)
        address = _index_url(url or installer_url(channel_url(source, file)))
        reader = read_channel(source, file)
        chosen = choose(reader, reader.head(), selection)
        found = list(packages_under_test(chosen if packages else newest(chosen), address))
    else:
        ours = {"--url": url, "--extra-index-url": indexes, "--variant": variants, "--only": files}
        refuse_given(ours, "is for what a channel has: --from CHANNEL")
        found = _read(packages)
    exit_on_sigterm()
    return SmokeReport.of(smoke_here(found, request, tell=on_line), level)


def _read(packages: Sequence[str | Path]) -> list[PackageUnderTest]:
    if not packages:
        msg = "there is nothing to try"
        raise UsageError(msg, hint="name packages, or a channel by --from")
    return [read_package_under_test(Path(package)) for package in packages]


def _index_url(url: str) -> str:
    try:
        return parse_index_url(url)
    except ValueError as error:
        hint = "--url https://… says where users find the channel"
        raise UsageError(str(error), hint=hint) from error
