"""`torchyard farm user`: adds a user."""

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
    help="force: rebuild jobs; stop: stop and pause; publish: rebuild publish jobs.",
)
def command(*, folder: Path, name: str, roles: tuple[Role, ...]) -> None:
    """Add a user to farm.toml, with a new password.

    The path of the password's file is printed.

    Restart the master to let the user in. Reading the web page needs no user.
    """
    from torchyard.terminal.console import say, write
    from torchyard_farm.settings.farm import FILE, SECRETS, load_farm, parse_farm
    from torchyard_farm.settings.layout import make_secrets
    from torchyard_farm.settings.names import invalid_names

    for wrong in invalid_names([name]):
        raise UsageError(wrong)
    if name in load_farm(folder).users:
        msg = f"the user `{name}` exists already"
        raise UsageError(msg, hint=f"edit the roles in {folder}/{FILE}: [user.{name}]")
    given = ", ".join(f'"{role}"' for role in roles)
    added = f'\n[user."{name}"]\nroles = [{given}]\n'
    farm = parse_farm((folder / FILE).read_text(encoding="utf-8") + added)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(added)
    make_secrets(folder, farm)
    say(f"restart the master to let {name} in: torchyard farm stop {folder}, and start")
    write(f"{folder / SECRETS / name}\n")
