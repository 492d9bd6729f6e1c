"""`torchyard channel check`: audit any index, as an outsider."""

import click

from torchyard.cli.options import policy_option
from torchyard.cli.output import reports


@click.command("check")
@click.argument("place", metavar="URL|DIR")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="GLOB",
    help="Look only at these projects, or these conda packages.",
)
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that are meant to come from elsewhere, such as 'nvidia-*'.",
)
@click.option(
    "--deep", is_flag=True, help="Read every package, and compare it with what the index says."
)
@click.option("--yes", is_flag=True, help="Look at all of a large index without a question.")
@policy_option
@reports("check_index")
def command() -> None:
    """Audit any simple index or conda channel from outside.

    It may be any index: an address with a list of projects, the page of one project, a conda
    channel, or a channel of torchyard with all that is in it (wheels, conda packages and zips);
    on the web or in a directory.

    All of a large index that is not torchyard's own is read only if you agree, as it takes long.
    """
