"""`torchyard farm follow`: follows a plan as if it were built here."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchyard.cli.options import json_option
from torchyard_farm.cli.options import farm_argument

if TYPE_CHECKING:
    from torchyard.store.store import Store
    from torchyard_farm.scheduling.plans import FarmPlan


@click.command("follow")
@farm_argument
@click.argument("plan")
@json_option
def command(*, folder: Path, plan: str, as_json: bool) -> None:
    """Follow a plan to its end, and exit as `torchyard build` does.

    Ctrl-C ends this command only. With --json, events are printed as they happen.
    """
    from torchyard.config.credentials import take_credentials
    from torchyard.store.store import Store
    from torchyard_farm.scheduling.plans import Plans
    from torchyard_farm.settings.farm import load_farm

    farm = load_farm(folder)
    take_credentials()
    found = Plans(folder).read(plan)
    store = Store.at(found.store, make=False)
    follow_and_report(found, store, folder, str(folder / farm.file), as_json=as_json)


def follow_and_report(
    plan: "FarmPlan", store: "Store", folder: Path, file: str, *, as_json: bool
) -> None:
    """Follow a plan, and print its events and its summary."""
    from torchyard.cli.build_display import build_display, end_build
    from torchyard.workspace.watch import new_folder, watching
    from torchyard_farm.cli.engine import follow_plan

    records = new_folder(file)
    with (
        build_display(store, None, as_json=as_json) as listeners,
        watching(records, listeners) as on_event,
    ):
        result = follow_plan(plan, store, folder, records, on_event)
    end_build(result, store, records, as_json=as_json)
