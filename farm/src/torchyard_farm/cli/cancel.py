"""`torchyard farm cancel`: cancels a plan and its jobs."""

from pathlib import Path

import click

from torchyard_farm.cli.options import farm_argument


@click.command("cancel")
@farm_argument
@click.argument("plan")
def command(*, folder: Path, plan: str) -> None:
    """Cancel a plan.

    Pending jobs are not started, and running jobs are stopped.

    Results are kept.
    """
    from torchyard.terminal.console import say
    from torchyard_farm.scheduling.plans import Plans
    from torchyard_farm.settings.farm import load_farm

    load_farm(folder)
    Plans(folder).cancel(plan)
    say(f"{plan} is cancelled; the master stops its running jobs")
