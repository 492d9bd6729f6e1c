"""`torchyard farm stop`: stops the master; running jobs continue."""

from pathlib import Path

import click

from torchyard_farm.cli.options import farm_argument


@click.command("stop")
@farm_argument
def command(*, folder: Path) -> None:
    """Stop the master in DIR. Nothing is lost: everything continues when it is started again.

    Stop a master that was started with --foreground by SIGTERM.
    """
    from torchyard.terminal.console import say
    from torchyard_farm.settings.farm import load_farm
    from torchyard_farm.settings.layout import find_running_master, run_buildbot

    load_farm(folder)
    if find_running_master(folder) is None:
        say(f"no master runs in {folder}")
    else:
        run_buildbot(folder, "stop")
        say("the master has stopped")
