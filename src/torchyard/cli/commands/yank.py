"""`torchyard yank`: take files back."""

import click

from torchyard.cli.options import (
    channel_argument,
    file_option,
    json_option,
    only_option,
    selectors_argument,
    variant_option,
)
from torchyard.cli.output import show_document
from torchyard.errors import UsageError
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import open_channel


@click.command("yank")
@channel_argument
@selectors_argument
@variant_option
@only_option
@click.option(
    "--reason", metavar="TEXT", help="The reason, which readers see; needed unless --undo is given."
)
@click.option("--undo", is_flag=True, help="Offer the files again.")
@file_option
@json_option
def command(
    *,
    channel: str,
    selectors: tuple[str, ...],
    variants: tuple[str, ...],
    files: tuple[str, ...],
    reason: str | None,
    undo: bool,
    file: str,
    as_json: bool,
) -> None:
    """Take files of CHANNEL back: installers pass them over, unless asked for exactly that version.

    SELECTOR is a requirement: torch==2.14.0, torch==2.14.0.dev2026*, torch. Conda's solvers no
    longer see such packages. Nothing is deleted.
    """
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.ops.yank import yank
    from torchyard.publish.select import parse_selection
    from torchyard.reports.channel.document import changed_document
    from torchyard.reports.channel.text import changed_report

    if undo == (reason is not None):
        msg = "--undo needs no reason" if undo else "a reason is missing"
        raise UsageError(
            msg,
            hint="leave --reason out"
            if undo
            else "--reason TEXT says why, to all readers of the index",
        )
    selection = parse_selection(selectors, variants, files)
    place = open_channel(channel, file)
    why = f"offer {selection} again" if undo else f"yank {selection}: {reason}"
    head, changed = yank(place, selection, reason, ChangeReason(why, current_moment()))
    document = changed_document(place.url, head, {"offered" if undo else "yanked": changed})
    show_document(document, changed_report, as_json=as_json)
