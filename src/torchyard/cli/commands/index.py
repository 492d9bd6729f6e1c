"""`torchyard index`: check indexes; show the log of a channel; rewrite its pages; repair it."""

from typing import get_args

import click

from torchyard.cli.options import (
    channel_argument,
    confirm,
    file_option,
    json_option,
    policy_option,
)
from torchyard.cli.output import show_document
from torchyard.errors import AuditError, SelectionError
from torchyard.index.entry import Status
from torchyard.terminal.console import talk
from torchyard.workspace.locations import open_channel, open_damaged_channel, read_channel

_MANY = 200
"""More projects, or packages of a conda channel, take minutes."""


@click.group("index")
def command() -> None:
    """Check any index, and look after the pages of a channel."""


@command.command("check")
@click.argument("place", metavar="URL|DIR")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="GLOB",
    help="Look only at these projects, or these conda packages.",
)
@click.option(
    "--external",
    multiple=True,
    metavar="GLOB",
    help="Names that are meant to come from elsewhere, such as 'nvidia-*'.",
)
@click.option(
    "--deep", is_flag=True, help="Read every package, and compare it with what the index says."
)
@click.option("--yes", is_flag=True, help="Look at all of a large index without a question.")
@policy_option
@json_option
def check_index(
    *,
    place: str,
    projects: tuple[str, ...],
    external: tuple[str, ...],
    deep: bool,
    yes: bool,
    policy_name: str,
    as_json: bool,
) -> None:
    """Audit a simple index or a conda channel, as an outsider.

    It may be any index: an address with a list of projects, the page of one project, a conda
    channel, or a channel of torchyard with all that is in it (wheels, conda packages and zips);
    on the web or in a directory.

    All of a large index that is not torchyard's own is read only if you agree, as it takes long.
    """
    from torchyard.checks.policies import load_policy
    from torchyard.config.tables import load_tables
    from torchyard.host.fetcher import directory_url
    from torchyard.publish.index_check.check import audit
    from torchyard.publish.index_check.findings import IndexFindings
    from torchyard.publish.index_check.simple import Scope
    from torchyard.reports.index_check.document import index_check_document
    from torchyard.reports.index_check.text import index_check_report
    from torchyard.workspace.clock import current_date

    subdirs = [platform.conda_subdir for platform in load_tables().platforms.values()]
    findings = IndexFindings(load_policy(policy_name), current_date())
    agreed = yes or bool(projects)

    def agree(count: int, what: str) -> None:
        nonlocal agreed
        if count > _MANY and not agreed:
            hint = "--project GLOB names those to look at; --yes looks at all"
            confirm(f"Look at all {count:,} {what}?", f"{place} has {count:,} {what}", hint)
            agreed = True

    scope = Scope(projects=projects, external=external, deep=deep, agree=agree)
    audited = audit(directory_url(place), scope, subdirs, findings)
    document = index_check_document(audited, findings, deep=deep)
    show_document(document, index_check_report, as_json=as_json)
    if document.findings["error"]:
        msg = f"errors were found in {audited.url}"
        raise AuditError(msg, hint=f"`torchyard explain rule {document.rules[0].rule}` says more")


@command.command("log")
@channel_argument
@file_option
@json_option
def show_log(*, channel: str, file: str, as_json: bool) -> None:
    """List the changes of CHANNEL, the newest first.

    `torchyard rollback` goes back to any generation that is listed.
    """
    from torchyard.reports.channel.document import log_document
    from torchyard.reports.channel.text import log_report

    place = read_channel(channel, file)
    document = log_document(place.url, place.head())
    show_document(document, log_report, as_json=as_json)


@command.command("mend")
@channel_argument
@click.argument("parts", nargs=-1, metavar="[PART]...")
@file_option
@json_option
def mend_pages(*, channel: str, parts: tuple[str, ...], file: str, as_json: bool) -> None:
    """Rewrite pages of CHANNEL that are not what they should be.

    A publisher that was killed may leave some. PART is simple/torch, conda/linux-64 or
    libtorch/torch; without any, all pages are checked.
    """
    from torchyard.model.suggest import did_you_mean
    from torchyard.publish.channel.draft import ROOTS
    from torchyard.reports.channel.document import MendDocument
    from torchyard.reports.channel.text import mend_report

    place = open_channel(channel, file)
    known = place.head().parts
    for part in parts:
        if part not in known:
            msg = f"`{place.url}` has no part `{part}`"
            raise SelectionError(msg, hint=did_you_mean(part, known))
    document = MendDocument(channel=place.url, pages=place.mend(parts or [*known, ROOTS]))
    show_document(document, mend_report, as_json=as_json)


@command.command("repair")
@channel_argument
@click.option("--dry-run", is_flag=True, help="Only print what would be restored.")
@file_option
@json_option
def restore_channel(*, channel: str, dry_run: bool, file: str, as_json: bool) -> None:
    """Restore CHANNEL if its head or states are damaged.

    A damaged head is taken from its copy, or made of the states of its parts. A part whose state is
    damaged shows an earlier one: publish again what was published since. No package is deleted.
    """
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.ops.repair_channel import repair_channel
    from torchyard.reports.channel.document import index_repair_document
    from torchyard.reports.channel.text import index_repair_report
    from torchyard.workspace.clock import current_moment

    place = open_damaged_channel(channel, file)
    order = ChangeReason("index repair", current_moment())
    done = repair_channel(place, order, dry_run=dry_run)
    document = index_repair_document(place.url, done, dry_run=dry_run)
    show_document(document, index_repair_report, as_json=as_json)


@command.command("status")
@channel_argument
@click.argument("project")
@click.argument("status", type=click.Choice(get_args(Status)))
@click.option("--reason", default="", metavar="TEXT", help="The reason, which readers see.")
@file_option
def set_project_status(
    *, channel: str, project: str, status: Status, reason: str, file: str
) -> None:
    """Set the status of a PROJECT (PEP 792).

    An archived project takes no new files, a deprecated one is not to be used any more, and the
    files of a quarantined one are hidden until it is active again.
    """
    from packaging.utils import canonicalize_name

    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.ops.status import set_status
    from torchyard.workspace.clock import current_moment

    place = open_channel(channel, file)
    because = f": {reason}" if reason else ""
    order = ChangeReason(f"status {project} {status}{because}", current_moment())
    head = set_status(place, canonicalize_name(project), status, reason, order)
    talk(f"{place.url}: generation {head.generation}, {project} is {status}")
