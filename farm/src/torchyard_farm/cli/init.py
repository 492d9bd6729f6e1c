"""`torchyard farm init`: creates a master."""

from pathlib import Path

import click

from torchyard.cli.options import file_option
from torchyard.cli.output import VALUES
from torchyard.terminal.console import say
from torchyard_farm.cli.options import farm_argument

VALUES["farm"] = "torchyard_farm.settings.farm:FarmSpec"


@click.command("init")
@farm_argument
@file_option
@click.option(
    "--database",
    metavar="URL",
    default="sqlite:///state.sqlite",
    show_default=True,
    help="Database of the queue and history: postgresql://USER@HOST/NAME; SQLite is for trials.",
)
def command(*, folder: Path, file: str, database: str) -> None:
    """Create a master in DIR for a project.

    It has a worker for each of the project's platforms.

    Edit farm.toml in it; passwords of workers are in the directory `secrets`. An existing farm.toml
    is kept, and --file is not read then; everything else is brought up to date.
    """
    from torchyard.config.load import load_config
    from torchyard.host.files import absolute
    from torchyard.workspace.clock import now
    from torchyard_farm.master.db.connection import check_database
    from torchyard_farm.settings.farm import FILE
    from torchyard_farm.settings.layout import farm_text, make_master, run_buildbot

    text = ""
    if not (folder / FILE).exists():
        text = farm_text(absolute(file), database, load_config(file).matrix.values[0])
    farm = make_master(folder, text, now())
    check_database(farm.database)
    run_buildbot(folder, "upgrade-master", "--quiet")
    names = ", ".join(machine.name for machine in farm.machines)
    say(f"{folder}/farm.toml: workers {names}")
    say(f"start the master with: torchyard farm start {folder}")
