"""`torchyard lock`: which wheels an extension is built with."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option
from torchyard.cli.output import calls


@in_section(HelpSection.START)
@click.command("lock")
@file_option
@click.option("--upgrade", is_flag=True, help="Find newer wheels for cells that are locked, too.")
@click.option("--torch", multiple=True, metavar="RELEASE", help="Add it to the file first: 2.15.")
@click.option("--python", multiple=True, metavar="PYTHON", help="Add it to the file first: cp313.")
@click.option(
    "--version",
    is_flag=False,
    flag_value="",
    help="Write this version of the project first; without a value, that of the newest sdist.",
)
@calls("lock_wheels")
def command() -> None:
    """Write torchyard.lock: the wheels that an extension is built with.

    For each cell, these are the torch of the cell, the build requirements in the project's
    pyproject.toml and in `requires` of [build], and all that they need: the newest versions that uv
    finds in the indexes of its settings. Builds use exactly these files. The image of [root] is
    locked by its digest.

    Run it again after a change of the matrix, or let it make the change: it finds the wheels of new
    cells, and keeps the others, so `torchyard build` makes only what is new. Torch releases that
    torchyard does not know yet are described by their wheels.
    """
