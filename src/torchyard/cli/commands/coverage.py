"""`torchyard coverage`: what a channel lacks of a plan."""

import click

from torchyard.cli.options import channel_argument, file_option, json_option, subset_option
from torchyard.config.load import load_config
from torchyard.errors import PublishError
from torchyard.model.quantity import show_count
from torchyard.terminal.console import show, write
from torchyard.workspace.channel_config import channel_subset
from torchyard.workspace.locations import read_channel


@click.command("coverage")
@channel_argument
@file_option
@click.option("--version", metavar="V", help="Version to look for, in place of the file's.")
@subset_option
@click.option("--fail-on-missing", is_flag=True, help="Fail if a package is missing.")
@json_option
def command(
    *,
    channel: str,
    file: str,
    version: str | None,
    subset: str | None,
    fail_on_missing: bool,
    as_json: bool,
) -> None:
    """Show which packages of the plan CHANNEL has, which are missing, and which are not planned.

    A channel of the file is compared with the subset that is published there, any other with the
    whole matrix.
    """
    from torchyard.plan.expand import expand
    from torchyard.plan.select import PlanSelection, ReadSelection
    from torchyard.publish.coverage import Presence, find_coverage
    from torchyard.reports.coverage.document import coverage_document
    from torchyard.reports.coverage.text import coverage_report
    from torchyard.terminal.json_output import encode

    config = load_config(file)
    project = config.project
    subset = subset or channel_subset(config, config.channels.get(channel))
    place = read_channel(channel, file)
    planned = ReadSelection(expand(config), PlanSelection(subset)).cells()
    found = find_coverage(place, project.name, version or project.version, planned)
    if as_json:
        write(encode(coverage_document(found, place.url, subset)))
    else:
        show(coverage_report(found, place.url, subset))
    missing = found.those(Presence.MISSING)
    if fail_on_missing and missing:
        msg = f"the channel lacks {show_count(len(missing), 'package')} of the plan"
        raise PublishError(msg, hint=f"build and publish them; the first is {missing[0].path}")
