"""`torchyard farm start`: starts the master."""

import os
from pathlib import Path

import click

from torchyard_farm.cli.options import farm_argument

_PATIENCE = 300
"""Seconds that a master may take to start, on a busy machine."""


@click.command("start")
@farm_argument
@click.option("--foreground", is_flag=True, help="Stay in the foreground, as services do.")
def command(*, folder: Path, foreground: bool) -> None:
    """Start the master in DIR."""
    from torchyard.host.process import own_program, replace_process
    from torchyard.terminal.console import say
    from torchyard.workspace.clock import now
    from torchyard_farm.master.db.connection import check_database
    from torchyard_farm.settings.farm import load_farm
    from torchyard_farm.settings.layout import (
        make_secrets,
        refuse_occupied,
        refuse_running,
        run_buildbot,
    )
    from torchyard_farm.settings.tls import ensure_certificate

    farm = load_farm(folder)
    refuse_running(folder)
    refuse_occupied(farm)
    check_database(farm.database)
    make_secrets(folder, farm)
    ensure_certificate(folder, farm, now())
    say(f"the farm will be at {farm.url}")
    if foreground:
        argv = [own_program("buildbot"), "start", "--nodaemon", "."]
        replace_process(argv, cwd=folder, env=os.environ)
    run_buildbot(folder, "start", f"--start_timeout={_PATIENCE}")
