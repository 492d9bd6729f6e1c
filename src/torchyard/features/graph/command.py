"""`torchyard graph`: what a build or a package consists of, and what is linked with what."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import build_argument, file_option, store_option
from torchyard.cli.output import reports


@in_section(HelpSection.UNDERSTAND)
@click.command("graph")
@build_argument
@file_option
@store_option
@click.option(
    "--focus", default="", metavar="TARGET", help="Show a target or library and its neighbours."
)
@click.option(
    "--why",
    nargs=2,
    metavar="A B",
    help="Show the chain by which A needs B, and the symbols that carry it.",
)
@click.option(
    "--against",
    default="",
    metavar="PACKAGE",
    help="Compare what the build links with what a package of it has.",
)
@reports("graph_links", html="Write a page.", svg="Write a picture.", dot="Write it for Graphviz.")
def command() -> None:
    """Show which targets and libraries are linked with which.

    JOB is a job that runs or failed, by default the last one, or whose result is in the store, such
    as core:*; DIRECTORY any directory that ninja built in, PACKAGE a wheel, conda package or
    libtorch zip. In text and pictures, third-party projects, the system's libraries and many
    programs are one node each; JSON has all.
    """
