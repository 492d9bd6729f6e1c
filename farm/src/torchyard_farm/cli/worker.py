"""`torchyard farm worker`: this machine works for a master."""

from pathlib import Path

import click

from torchyard.errors import UsageError
from torchyard_farm.cli.options import farm_argument


@click.command("worker")
@farm_argument
@click.option("--master", required=True, metavar="HOST:PORT", help="Where the master listens.")
@click.option("--name", required=True, help="What farm.toml calls this machine.")
@click.option("--slots", type=click.IntRange(1), default=1, help="As in farm.toml.")
@click.option(
    "--password-file",
    required=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A copy of the file of this name in the master's directory `secrets`.",
)
def command(*, folder: Path, master: str, name: str, slots: int, password_file: Path) -> None:
    """Work for a master, in DIR, until it is stopped by a signal.

    Should the connection break, it is made again.
    """
    from torchyard_farm.buildbot.agent import run_agents
    from torchyard_farm.settings import agents_of, parse_address

    try:
        address = parse_address(master)
    except ValueError as error:
        raise UsageError(str(error)) from error
    password = password_file.read_text(encoding="utf-8").strip()
    folder.mkdir(parents=True, exist_ok=True)
    run_agents(folder.resolve(), address, list(agents_of(name, slots)), password)
