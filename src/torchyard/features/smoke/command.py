"""`torchyard smoke`: install packages, and test them."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, only_option, variant_option
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("smoke")
@click.argument("packages", nargs=-1, metavar="PACKAGE…")
@click.option(
    "--from",
    "source",
    metavar="CHANNEL",
    help="Install from a channel, as users do; PACKAGE is a requirement: torch==2.14.0.",
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
    "--conda-channel",
    "channels",
    multiple=True,
    metavar="URL",
    help="Where conda packages find what they need, besides the packages that are given.",
)
@click.option(
    "--interpreter",
    "python",
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
@reports("smoke_packages")
def command() -> None:
    """Install packages in fresh environments, and test them.

    A wheel is installed by pip and by uv, a conda package into a prefix of its own, and a libtorch
    zip is unpacked; each with what it declares to need, and nothing else. Then tests are run: in a
    clean environment, and in one where all is wrong that users have met. A package for another
    system, or for a Python that is not installed, is reported as not run.

    Installers run in a sandbox where bubblewrap works, but tests do not: they run code of the
    packages with your rights. Smoke jobs of a build run in a sandbox as a whole.

    With --from, the newest version of everything in a channel is tried, or what is named.
    """
