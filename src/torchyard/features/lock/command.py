"""`torchyard lock`: the wheels that an extension is built with."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option
from torchyard.cli.output import calls


@in_section(HelpSection.START)
@click.command("lock")
@file_option
@click.option("--upgrade", is_flag=True, help="Also find newer wheels for locked cells.")
@click.option("--torch", multiple=True, metavar="RELEASE", help="Add it to the file first: 2.15.")
@click.option("--python", multiple=True, metavar="PYTHON", help="Add it to the file first: cp313.")
@click.option(
    "--version",
    is_flag=False,
    flag_value="",
    help="Set this version of the project first; without a value, the newest sdist's.",
)
@calls("lock_wheels")
def command() -> None:
    """Write torchyard.lock: the wheels that an extension is built with.

    For each cell, these are its torch, the build requirements in the project's pyproject.toml and
    `requires` of [build], and their dependencies: the newest versions that uv finds in its indexes.
    Builds use exactly these files. The image of [root] is locked by its digest. Of conda in
    [toolchain], both environments are locked below torchyard.conda, for each platform and Python.

    Run it again after a change of the matrix, or let it make the change: it finds wheels for new
    cells and keeps the others, so `torchyard build` makes only new packages. Torch releases missing
    from torchyard's tables are described by their wheels.
    """
