"""`torchyard farm cancel`: a plan ends, and so do its jobs."""

from pathlib import Path

import click

from torchyard_farm.cli.options import farm_argument


@click.command("cancel")
@farm_argument
@click.argument("plan")
def command(*, folder: Path, plan: str) -> None:
    """End a plan: what waits is not begun, and what runs is stopped. Results are kept."""
    from torchyard.terminal.console import say
    from torchyard_farm.scheduling.plans import Plans
    from torchyard_farm.settings.farm import load_farm

    load_farm(folder)
    Plans(folder).cancel(plan)
    say(f"{plan} is cancelled; the master ends what runs of it")
