"""`torchyard graph`: the parts of a build or a package, and their links."""

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
    help="Show the chain by which A needs B, and its symbols.",
)
@click.option(
    "--against",
    default="",
    metavar="PACKAGE",
    help="Compare the build's links with a package of it.",
)
@reports("graph_links", html="Write a page.", svg="Write a picture.", dot="Write it for Graphviz.")
def command() -> None:
    """Show targets, libraries and their links.

    JOB is a job that runs or failed, by default the last one, or has a result in the store, such as
    core:*; DIRECTORY is any build directory of ninja, PACKAGE a wheel, conda package or libtorch
    zip. In text and pictures, third-party projects, the system's libraries and large groups of
    programs are single nodes; JSON has all.
    """
