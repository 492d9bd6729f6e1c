"""`torchyard rollback`: show again what a channel showed before."""

import click

from torchyard.cli.options import channel_argument, file_option, json_option
from torchyard.cli.output import show_document
from torchyard.errors import UsageError
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import open_channel


@click.command("rollback")
@channel_argument
@click.option("--generation", type=int, metavar="GENERATION", help="Generation to go back to.")
@click.option("--last", is_flag=True, help="Roll the last change back.")
@file_option
@json_option
def command(*, channel: str, generation: int | None, last: bool, file: str, as_json: bool) -> None:
    """Show again what CHANNEL showed at an earlier generation.

    That is a change like others, and can be rolled back itself. Files that were published since are
    hidden, and `torchyard prune` deletes them later. Pins and the status of projects stay.
    """
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.ops.rollback import rollback
    from torchyard.reports.channel.document import changed_document
    from torchyard.reports.channel.text import changed_report

    if last == (generation is not None):
        msg = "--last and --generation contradict each other" if last else "where to?"
        hint = "--last takes the last change back, --generation goes to one of `index log`"
        raise UsageError(msg, hint=hint)
    place = open_channel(channel, file)
    why = "rollback of the last change" if last else f"rollback to generation {generation}"
    done = rollback(place, generation, ChangeReason(why, current_moment()))
    document = changed_document(place.url, done.head, done.changes)
    show_document(document, changed_report, as_json=as_json)
