"""`torchyard prune`: keep a channel small."""

from datetime import datetime, timedelta

import click
from packaging.utils import canonicalize_name

from torchyard.cli.options import channel_argument, file_option, json_option
from torchyard.cli.output import show_document
from torchyard.errors import UsageError
from torchyard.model.quantity import parse_duration
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import open_channel

_LONG = 36_500
"""The longest period in days, about a century."""


@click.command("prune")
@channel_argument
@click.option(
    "--keep", type=click.IntRange(1), metavar="N", help="Keep the newest N versions of a project."
)
@click.option(
    "--keep-days",
    type=click.IntRange(1, _LONG),
    metavar="N",
    help="Keep versions with a file of the last N days.",
)
@click.option("--project", "projects", multiple=True, metavar="GLOB", help="Only these projects.")
@click.option(
    "--grace", default="7 d", show_default=True, help="Delete what has been hidden for longer."
)
@click.option(
    "--orphans",
    is_flag=True,
    help="List everything, and delete what killed publishers left that is older than --grace.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be hidden or deleted.")
@file_option
@json_option
def command(
    *,
    channel: str,
    keep: int | None,
    keep_days: int | None,
    projects: tuple[str, ...],
    grace: str,
    orphans: bool,
    dry_run: bool,
    file: str,
    as_json: bool,
) -> None:
    """Hide old versions in CHANNEL, and delete what has been hidden for a while.

    All variants of a version go together. The newest version of each project stays, and so do
    pinned ones. Without --keep and --keep-days, nothing more is hidden. Pages that a killed
    publisher left are rewritten.
    """
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.ops.prune import prune
    from torchyard.publish.ops.retention import Keep
    from torchyard.reports.channel.document import prune_document
    from torchyard.reports.channel.text import prune_report

    if projects and not (keep or keep_days):
        msg = "--project has no effect without --keep or --keep-days"
        raise UsageError(msg, hint="say how many versions of it stay")
    now = current_moment()
    wanted = Keep(
        versions=keep or 0,
        since=_days_before(now, keep_days) if keep_days else "",
        projects=tuple(map(canonicalize_name, projects)),
        grace=_period(grace),
    )
    place = open_channel(channel, file)
    done = prune(place, wanted, ChangeReason("prune", now), orphans=orphans, dry_run=dry_run)
    document = prune_document(place.url, done, dry_run=dry_run)
    show_document(document, prune_report, as_json=as_json)


def _period(text: str) -> timedelta:
    try:
        seconds = 0 if text == "0" else parse_duration(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return min(timedelta(days=_LONG), timedelta(seconds=seconds))


def _days_before(moment: str, days: int) -> str:
    return f"{datetime.fromisoformat(moment) - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
