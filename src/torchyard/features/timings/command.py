"""`torchyard timings`: where the time of a build went."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option, names_argument, store_option
from torchyard.cli.output import reports


@in_section(HelpSection.UNDERSTAND)
@click.command("timings")
@names_argument("what", required=False, metavar="[JOB|DIRECTORY]")
@file_option
@store_option
@click.option(
    "--against", default="", metavar="JOB|DIRECTORY", help="Compare with an earlier build."
)
@click.option(
    "--ratio",
    type=click.FloatRange(min=1, min_open=True),
    default=1.5,
    show_default=True,
    help="Ratio to the time in the earlier build that is an error.",
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="NUMBER",
    default=(1, 2, 4, 16, 64),
    show_default=True,
    help="Number of compile slots to simulate; may be repeated.",
)
@reports(
    "measure_build",
    html="Write a page.",
    trace="Write a trace for Chrome's about:tracing, or Perfetto.",
)
def command() -> None:
    """Show where the time of a build went.

    JOB is a job that runs or failed, by default the last one, or has a result in the store, such as
    core:*; DIRECTORY is any build directory of ninja. The times with other numbers of compile slots
    are simulated.
    """
