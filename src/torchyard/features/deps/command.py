"""`torchyard deps`: versions of third-party dependencies, and their disagreements."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import file_option
from torchyard.cli.output import reports


@in_section(HelpSection.UNDERSTAND)
@click.command("deps")
@click.option(
    "--source",
    default=".",
    show_default="here",
    metavar="DIR",
    help="Source tree to read: a clone, or a source that torchyard has fetched.",
)
@file_option
@click.option("--channel", default="", metavar="CHANNEL", help="Compare with its newest torch.")
@click.option("--newest", is_flag=True, help="Ask the package index for the newest versions.")
@click.option(
    "--conda-channel",
    "conda",
    default="",
    metavar="URL",
    help="Ask a conda channel for its newest versions.",
)
@click.option(
    "--fail-on-conflict",
    "check",
    is_flag=True,
    help="Exit with 17 if a version contradicts the tree.",
)
@reports("compare_dependencies", html="Write a page.", markdown="Write a Markdown table.")
def command() -> None:
    """Compare third-party versions in source, channel and indexes.

    They are read, with their lines, from a source tree (submodules, version headers, requirements,
    CI scripts), from FILE and torchyard's own tables, from a channel, and from package indexes.
    """
