"""`torchyard farm user`: somebody who may change something."""

from pathlib import Path

import click

from torchyard.errors import UsageError
from torchyard_farm.cli.options import farm_argument
from torchyard_farm.settings.roles import ROLES, Role


@click.command("user")
@farm_argument
@click.argument("name")
@click.option(
    "--role",
    "roles",
    required=True,
    multiple=True,
    type=click.Choice(ROLES),
    help="force: build and try again; stop: end and pause; publish: the same for what publishes.",
)
def command(*, folder: Path, name: str, roles: tuple[Role, ...]) -> None:
    """Add a user to farm.toml, make a password, and print the name of the file that it is in.

    The master knows the user when it is started again. Everybody may look, without any user.
    """
    from torchyard.terminal.console import say, write
    from torchyard_farm.settings.farm import FILE, SECRETS, load_farm, parse_farm
    from torchyard_farm.settings.layout import make_secrets
    from torchyard_farm.settings.names import invalid_names

    for wrong in invalid_names([name]):
        raise UsageError(wrong)
    if name in load_farm(folder).users:
        msg = f"there is a user `{name}` already"
        raise UsageError(msg, hint=f"roles are in {folder}/{FILE}: [user.{name}]")
    given = ", ".join(f'"{role}"' for role in roles)
    added = f'\n[user."{name}"]\nroles = [{given}]\n'
    farm = parse_farm((folder / FILE).read_text(encoding="utf-8") + added)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(added)
    make_secrets(folder, farm)
    say(f"restart the master to let {name} in: torchyard farm stop {folder}, and start")
    write(f"{folder / SECRETS / name}\n")
