"""`torchyard farm status`: shows workers and plans."""

from pathlib import Path

import click

from torchyard.cli.options import json_option
from torchyard.cli.output import VALUES
from torchyard_farm.cli.options import farm_argument

VALUES["farm-status"] = "torchyard_farm.client.status:Status"


@click.command("status")
@farm_argument
@json_option
def command(*, folder: Path, as_json: bool) -> None:
    """Show which workers are connected, and the progress of each plan."""
    import msgspec

    from torchyard.terminal.console import show, write
    from torchyard.workspace.clock import current_moment
    from torchyard_farm.client.status import read_status, status_report
    from torchyard_farm.scheduling.plans import Plans
    from torchyard_farm.scheduling.worker_status import read_statuses
    from torchyard_farm.settings.dates import parse_moment
    from torchyard_farm.settings.farm import load_farm

    now = parse_moment(current_moment())
    status = read_status(load_farm(folder), Plans(folder), read_statuses(folder), now)
    if as_json:
        write(msgspec.json.encode(status) + b"\n")
    else:
        show(status_report(status))
