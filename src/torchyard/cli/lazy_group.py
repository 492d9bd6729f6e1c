"""Groups that import a command's module only when that command is called."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar

import click

from torchyard.errors import UsageError
from torchyard.model.suggest import did_you_mean

ROOM = "torchyard.cli.commands"
"""The package that has a module for each command that is not a feature's."""
FEATURES = "torchyard.features"
"""The package that has a folder for each feature."""


class Invocation:
    """What the command line asked for that concerns how errors are shown."""

    def __init__(self) -> None:
        self.as_json = False
        self.traceback = False


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    room: ClassVar[str] = ""
    lazy: ClassVar[Mapping[str, str]] = {}
    """The module of each command, below the package `room` if there is one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module = f"{self.room}.{self.lazy[cmd_name]}" if self.room else self.lazy[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = not args or args[0].startswith("-") or args[0] in self.lazy
        if not known and args[0] not in self.list_commands(ctx):
            msg = f"`{ctx.command_path}` has no command `{args[0]}`"
            raise UsageError(msg, hint=self.hint(ctx, args[0]))
        name, command, rest = super().resolve_command(ctx, args)
        is_declared = any(param.name == "as_json" for param in command.params) if command else False
        if is_declared or isinstance(command, click.Group):
            ctx.ensure_object(Invocation).as_json = "--json" in rest
        return name, command, rest

    def hint(self, ctx: click.Context, name: str) -> str | None:
        """Return a hint for a name that is not a command."""
        return did_you_mean(name, self.list_commands(ctx))


def command_modules(group: str = "") -> dict[str, str]:
    """Return the module of each command in a group, or of each top-level command."""
    names = {module.name for module in pkgutil.iter_modules(import_module(ROOM).__path__)}
    if group:
        return {
            name.removeprefix(f"{group}_"): f"{ROOM}.{name}"
            for name in sorted(names)
            if name.startswith(f"{group}_")
        }
    outer = sorted(name for name in names if name.partition("_")[0] not in names - {name})
    return {**{name: f"{ROOM}.{name}" for name in outer}, **feature_modules()}


def feature_modules() -> dict[str, str]:
    """Return the module of each command of a feature.

    `command.py` in a feature's folder has the command of that name, `command_yank.py` has `yank`.
    """
    found: dict[str, str] = {}
    for feature in pkgutil.iter_modules(import_module(FEATURES).__path__):
        folders = [f"{place}/{feature.name}" for place in import_module(FEATURES).__path__]
        for module in pkgutil.iter_modules(folders):
            first, _, name = module.name.partition("_")
            if first == "command":
                found[name or feature.name] = f"{FEATURES}.{feature.name}.{module.name}"
    return found
