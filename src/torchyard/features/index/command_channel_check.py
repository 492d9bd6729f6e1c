"""`torchyard channel check`: audit any index, as an outsider."""

import click

from torchyard.cli.options import policy_option
from torchyard.cli.output import reports


@click.command("check")
@click.argument("index", metavar="URL|DIR")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="GLOB",
    help="Audit only these projects or conda packages.",
)
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that come from elsewhere, such as 'nvidia-*'.",
)
@click.option("--deep", is_flag=True, help="Read every package, and compare it with the index.")
@click.option("--yes", is_flag=True, help="Audit all of a large index without a question.")
@policy_option
@reports("check_index")
def command() -> None:
    """Audit any simple index or conda channel from outside.

    It may be any index, on the web or in a directory: a list of projects, the page of a project, a
    conda channel, or a channel of torchyard with its wheels, conda packages and zips.

    A large index that is not torchyard's own is only read completely if you agree: it takes long.
    """
