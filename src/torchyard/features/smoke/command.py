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
    help="Install from a channel, like users; PACKAGE is a requirement: torch==2.14.0.",
)
@click.option("--url", metavar="URL", help="Address of that channel for users.")
@click.option(
    "--extra-index-url",
    "indexes",
    multiple=True,
    metavar="URL",
    help="Index for requirements that the channel lacks.",
)
@variant_option
@only_option
@file_option
@click.option(
    "--level",
    type=click.Choice(["import", "ops", "full"]),
    default="ops",
    show_default=True,
    help="How thoroughly to test: each level includes those before it.",
)
@click.option("--tests", metavar="DIR", help="Your own tests, besides those for any package.")
@click.option(
    "--environment",
    type=click.Choice(["clean", "hostile", "both"]),
    default="both",
    show_default=True,
    help="Environment of the package.",
)
@click.option(
    "--installer",
    type=click.Choice(["pip", "uv", "both"]),
    default="both",
    show_default=True,
    help="Installer of wheels.",
)
@click.option(
    "--conda-channel",
    "channels",
    multiple=True,
    metavar="URL",
    help="Channel for requirements of conda packages, besides the given packages.",
)
@click.option(
    "--interpreter",
    "python",
    type=click.Path(exists=True, dir_okay=False),
    metavar="PATH",
    help="Interpreter for wheels; by default one that fits.",
)
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Time for each test, instead of its own.",
)
@reports("smoke_packages")
def command() -> None:
    """Install packages in fresh environments, and test them.

    A wheel is installed by pip and by uv, a conda package into a separate prefix, and a libtorch
    zip is unpacked; each with only its declared requirements. Then tests run: in a clean
    environment, and in one reproducing every reported misconfiguration. A package for another
    system, or for a Python that is not installed, is reported as not run.

    Installers run in a sandbox where bubblewrap works, but tests do not: they run code of the
    packages with your rights. Smoke jobs of a build run in a sandbox as a whole.

    With --from, the named packages of a channel are tested, or the newest versions of all.
    """
