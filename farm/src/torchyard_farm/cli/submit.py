"""`torchyard farm submit`: submits a plan."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from torchyard.cli.options import json_option, request_options, selector_argument
from torchyard.errors import UsageError
from torchyard_farm.cli.options import farm_argument

if TYPE_CHECKING:
    from torchyard.workspace.build_request import BuildRequest

_file_option = click.option(
    "-f", "--file", metavar="FILE", help="Configuration, instead of the farm's own."
)


@click.command("submit")
@farm_argument
@selector_argument
@partial(request_options, file=_file_option)
@click.option("--wait", is_flag=True, help="Follow the plan to its end, as `torchyard build` does.")
@json_option
def command(
    *,
    folder: Path,
    request: "BuildRequest",
    wait: bool,
    as_json: bool,
) -> None:
    """Submit a plan to the master in DIR, and print its name.

    Jobs with results in the store are left out. If the master is not running, the plan waits for
    it. With --wait and --json, events are printed as they happen.
    """
    from torchyard.config.credentials import take_credentials
    from torchyard.model.quantity import show_count
    from torchyard.terminal.console import say, write
    from torchyard.workspace.clock import current_moment
    from torchyard_farm.cli.follow import follow_and_report
    from torchyard_farm.cli.submission import draft_plan, submit_draft
    from torchyard_farm.settings.farm import load_farm

    if as_json and not wait:
        msg = "--json needs --wait: there are no events otherwise"
        raise UsageError(msg, hint="without --json, the plan's name is printed alone")
    farm = load_farm(folder)
    take_credentials()
    wanted = replace(request, file=request.file or str(folder / farm.file))
    made = draft_plan(wanted, current_moment())
    farmed = submit_draft(made, wanted.file, folder, farm)
    if wait:
        follow_and_report(farmed, made.store, folder, wanted.file, as_json=as_json)
    elif farmed.jobs:
        say(f"{show_count(len(farmed.jobs), 'job')} of {len(made.plan):,} are left to do")
        write(f"{farmed.id}\n")
    else:
        say("the store has all results already")
