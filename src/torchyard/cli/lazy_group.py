"""Groups that import a command's module only when that command is called."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar

import click

from torchyard.errors import UsageError
from torchyard.model.suggest import did_you_mean

ROOM = "torchyard.cli.commands"
"""The package that has a module for each command."""


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    room: ClassVar[str] = ROOM
    lazy: ClassVar[Mapping[str, str]] = {}
    """The module of each command in the package `room`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(f"{self.room}.{self.lazy[cmd_name]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = not args or args[0].startswith("-") or args[0] in self.lazy
        if not known and args[0] not in self.list_commands(ctx):
            msg = f"`{ctx.command_path}` has no command `{args[0]}`"
            raise UsageError(msg, hint=self.hint(ctx, args[0]))
        return super().resolve_command(ctx, args)

    def hint(self, ctx: click.Context, name: str) -> str | None:
        """Return a hint for a name that is not a command."""
        return did_you_mean(name, self.list_commands(ctx))


def command_modules(group: str = "") -> dict[str, str]:
    """Return the module of each command in a group, or of each top-level command."""
    names = {module.name for module in pkgutil.iter_modules(import_module(ROOM).__path__)}
    if group:
        return {n.removeprefix(f"{group}_"): n for n in sorted(names) if n.startswith(f"{group}_")}
    return {name: name for name in sorted(names) if name.partition("_")[0] not in names - {name}}
