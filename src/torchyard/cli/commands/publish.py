"""`torchyard publish`: packages into a channel, all at once or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.options import (
    file_option,
    json_option,
    override_option,
    set_option,
    store_url_option,
)
from torchyard.cli.output import show_document
from torchyard.terminal.console import say

if TYPE_CHECKING:
    from torchyard.publish.staged import Grouping


@in_section(HelpSection.PUBLISH)
@click.command("publish")
@click.argument("results", nargs=-1, type=click.Path(path_type=Path))
@click.option("--to", "place", required=True, metavar="CHANNEL", help="Name, address or directory.")
@click.option("--partial", is_flag=True, help="Publish though packages of the plan are missing.")
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that packages may require though the channel does not have them.",
)
@click.option(
    "--upstream",
    multiple=True,
    metavar="URL",
    help="A simple index that has these names; the channel's commands for users name it.",
)
@override_option
@click.option(
    "--variants",
    type=click.Choice(["compute", "compute-blas"]),
    help="What has an index of its own, in a channel that is new.",
)
@click.option("--policy", "policy_name", metavar="NAME|FILE", help="How strictly to check.")
@click.option("--dry-run", is_flag=True, help="Only print what would be published, or why not.")
@file_option
@set_option
@store_url_option
@json_option
def command(
    *,
    results: tuple[Path, ...],
    place: str,
    partial: bool,
    external: tuple[str, ...],
    upstream: tuple[str, ...],
    overrides: tuple[str, ...],
    variants: "Grouping | None",
    policy_name: str | None,
    dry_run: bool,
    file: str,
    changes: tuple[str, ...],
    store_url: str | None,
    as_json: bool,
) -> None:
    """Publish packages to a channel: all at once, or not at all.

    RESULTS are files and directories; without any, all that was built.
    Everything is checked first: whether the plan's packages are all there, whether each is that
    of its cell, has no errors and passed its smoke tests, whether wheels of a version agree, and
    whether all that they require is in the channel or declared external. Then all of them become
    visible at once.
    """
    from torchyard.app.publish import publish_packages
    from torchyard.reports.publish.text import publish_report
    from torchyard.terminal.progress import ProgressLine

    document = publish_packages(
        place,
        results,
        file=file,
        changes=changes,
        store=store_url,
        partial=partial,
        external=external,
        upstream=upstream,
        overrides=overrides,
        variants=variants,
        policy=policy_name,
        dry_run=dry_run,
        meter=ProgressLine,
        on_line=say,
    )
    show_document(document, publish_report, as_json=as_json)
