"""`torchyard smoke`: install packages, and try them."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from torchyard.app.clock import current_date
from torchyard.app.locations import address_of, place_of, read_channel
from torchyard.cli.options import (
    file_option,
    json_option,
    only_option,
    refuse_given,
    variant_option,
)
from torchyard.config.credentials import take_credentials
from torchyard.errors import HostError, SmokeError, UsageError
from torchyard.host.signals import end_tidily
from torchyard.index.address import parse_index_url
from torchyard.terminal.console import say, show, write

if TYPE_CHECKING:
    from torchyard.checks.smoke.package_under_test import PackageUnderTest
    from torchyard.checks.smoke.request import Request
    from torchyard.publish.channel.reader import ChannelReader
    from torchyard.publish.select import Selection
    from torchyard.reports.smoke.document import SmokeDocument


@click.command("smoke")
@click.argument("packages", nargs=-1, metavar="PACKAGE…")
@click.option(
    "--from",
    "channel",
    metavar="CHANNEL",
    help="Install from a channel, as users do; PACKAGE is what of it: torch==2.14.0.",
)
@click.option("--url", metavar="URL", help="Where users find that channel.")
@click.option(
    "--extra-index-url",
    "indexes",
    multiple=True,
    metavar="URL",
    help="Where wheels of that channel find what it does not have.",
)
@variant_option
@only_option
@file_option
@click.option(
    "--level",
    type=click.Choice(["import", "ops", "full"]),
    default="ops",
    show_default=True,
    help="How much to try: each level has the tests of those before it.",
)
@click.option("--tests", metavar="DIR", help="Tests of your own, besides those for any package.")
@click.option(
    "--environment",
    type=click.Choice(["clean", "hostile", "both"]),
    default="both",
    show_default=True,
    help="What is around the package.",
)
@click.option(
    "--installer",
    type=click.Choice(["pip", "uv", "both"]),
    default="both",
    show_default=True,
    help="What installs wheels.",
)
@click.option(
    "--channel",
    "channels",
    multiple=True,
    metavar="URL",
    help="Where conda packages find what they need, besides the packages that are given.",
)
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False),
    metavar="PATH",
    help="Interpreter for wheels; else one that fits.",
)
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Time for each test, in place of its own.",
)
@json_option
def command(
    *,
    packages: tuple[str, ...],
    channel: str | None,
    url: str | None,
    indexes: tuple[str, ...],
    variants: tuple[str, ...],
    files: tuple[str, ...],
    file: str,
    level: str,
    tests: str | None,
    environment: str,
    installer: str,
    channels: tuple[str, ...],
    python: str | None,
    timeout: int | None,
    as_json: bool,
) -> None:
    """Install packages into fresh environments, and try whether they work.

    A wheel is installed by pip and by uv, a conda package into a prefix of its own, and a libtorch
    zip is unpacked; each with what it declares to need, and nothing else. Then tests are run: in a
    clean environment, and in one where all is wrong that users have met. A package for another
    system, or for a Python that is not here, is told as not run.

    With --from, the newest version of everything in a channel is tried, or what is named.
    """
    from torchyard.checks.smoke.installation import Installer
    from torchyard.checks.smoke.known_failures import load_known
    from torchyard.checks.smoke.package_under_test import read_package_under_test
    from torchyard.checks.smoke.request import Request
    from torchyard.checks.smoke.suite import Level, read_suite
    from torchyard.checks.smoke.surroundings import Environment
    from torchyard.publish.select import parse_selection
    from torchyard.reports.document import encode
    from torchyard.reports.smoke.text import smoke_report

    take_credentials()
    if channel is None:
        ours = {"--url": url, "--extra-index-url": indexes, "--variant": variants, "--only": files}
        refuse_given(ours, "is for what a channel has: --from CHANNEL")
    both = (Installer.PIP, Installer.UV)
    folder = Path(tests) if tests else None
    request = Request(
        level=Level(level),
        environments=(
            (Environment.CLEAN, Environment.HOSTILE)
            if environment == "both"
            else (Environment(environment),)
        ),
        installers=both if installer == "both" else (Installer(installer),),
        channels=channels,
        indexes=indexes,
        python=python or "",
        tests=read_suite(folder) if folder else (),
        today=current_date(),
        known=load_known(folder),
        timeout=timeout,
    )
    if channel is not None:
        selection = parse_selection(packages or ("*",), variants, files)
        address = _address(url or address_of(place_of(channel, file)))
        found = _published(read_channel(channel, file), selection, address, every=bool(packages))
    elif packages:
        found = [read_package_under_test(Path(package)) for package in packages]
    else:
        msg = "there is nothing to try"
        raise UsageError(msg, hint="name packages, or a channel by --from")
    document = tried(found, request)
    if as_json:
        write(encode(document))
    else:
        show(smoke_report(document))
    refuse_failures(document)


def _address(url: str) -> str:
    try:
        return parse_index_url(url)
    except ValueError as error:
        hint = "--url https://… says where users find the channel"
        raise UsageError(str(error), hint=hint) from error


def _published(
    channel: "ChannelReader", selection: "Selection", address: str, *, every: bool
) -> list["PackageUnderTest"]:
    """What is meant of a channel; only the newest versions, unless `every` one is."""
    from torchyard.publish.select import choose
    from torchyard.publish.smoke_targets import newest, specimens

    chosen = choose(channel, channel.head(), selection)
    return list(specimens(chosen if every else newest(chosen), address))


def tried(
    specimens: Sequence["PackageUnderTest"],
    request: "Request",
    beside: Sequence["PackageUnderTest"] = (),
) -> "SmokeDocument":
    """Try packages, each of which may need the others, or those beside them."""
    from torchyard.checks.smoke.smoke import smoke
    from torchyard.reports.smoke.document import smoke_document

    end_tidily()
    there = (*specimens, *beside)
    with TemporaryDirectory(prefix="torchyard-smoke-") as scratch:
        found = [
            smoke(one, request, there, Path(scratch, str(number)), say)
            for number, one in enumerate(specimens)
        ]
    return smoke_document(found, request.level)


def refuse_failures(document: "SmokeDocument", *, every: bool = False) -> None:
    """Fail if a package does not work, or none could be tried; or not `every` one."""
    idle = [package.file for package in document.packages if not package.tried]
    failed = [one.file for one in document.packages if one.tried and not one.works]
    if failed:
        msg = f"{', '.join(failed)} {'do' if len(failed) > 1 else 'does'} not work"
        raise SmokeError(msg, hint="the report above has what each test said")
    if idle and (every or len(idle) == len(document.packages)):
        msg = f"{', '.join(idle)} can't be tried here"
        hint = "install a Python that fits, or give it by --python; the system has to fit, too"
        raise HostError(msg, hint=hint)
