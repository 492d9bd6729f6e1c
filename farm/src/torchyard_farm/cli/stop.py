"""`torchyard farm stop`: the master ends; jobs go on when it is back."""

from pathlib import Path

import click

from torchyard_farm.cli.options import farm_argument


@click.command("stop")
@farm_argument
def command(*, folder: Path) -> None:
    """Stop the master in DIR. Nothing is lost: all goes on when it is started again."""
    from torchyard.host.process import capture, own_program

    from torchyard_farm.settings import load_farm

    load_farm(folder)
    capture([own_program("buildbot"), "stop", "."], cwd=folder)
