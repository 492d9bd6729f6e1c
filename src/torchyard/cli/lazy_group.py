"""Groups that import a command's module only when that command is called."""

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache, partial
from importlib import import_module
from typing import TypeVar

import click

from torchyard.errors import UsageError
from torchyard.model.suggest import did_you_mean

FEATURES = "torchyard.features"
"""The package that has a folder for each feature."""

_Command = TypeVar("_Command", bound=click.Command)


class HelpSection(StrEnum):
    """A section of `torchyard --help`, in the order of a user's day."""

    START = "Start: describe what should exist, and inspect the machine."
    BUILD = "Build: plan jobs, run them, and work in their directories."
    VERIFY = "Verify: check, try, compare and repair packages."
    PUBLISH = "Publish: fill a channel, change it, and find packages in it."
    UNDERSTAND = "Understand: why jobs exist, why they failed, where time went."
    OPERATE = "Operate: builds that run, stored results, CI and machines."


_SECTIONS: dict[click.Command, HelpSection] = {}
"""The section of each command that has been imported."""


def in_section(section: HelpSection) -> Callable[[_Command], _Command]:
    """List a command in a section of `torchyard --help`; the default is the last section."""

    def decorate(command: _Command) -> _Command:
        _SECTIONS[command] = section
        return command

    return decorate


def help_section(command: click.Command) -> HelpSection | None:
    """Return the section that a command declares."""
    return _SECTIONS.get(command)


class Invocation:
    """Options of the command line that change how errors are shown."""

    def __init__(self) -> None:
        self.as_json = False
        self.traceback = False
        self.verbose = False


def _be_verbose(ctx: click.Context, _parameter: click.Parameter, wanted: object) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.ensure_object(Invocation).verbose = True
        if ctx.parent:
            show_actions()


def show_actions() -> None:
    """Show what this process does from now on."""
    from torchyard.cli import verbose

    verbose.start_log()


_verbose_option = partial(
    click.option,
    "-v",
    "--verbose",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_be_verbose,
    help="Show programs run, files used and decisions, and log them to a file.",
)
verbose_option = _verbose_option()
"""Every command has it; the program's help lists it."""


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is called."""

    def lazy(self) -> Mapping[str, str]:
        """Return the modules of commands that are not imported yet."""
        return command_modules(self.name or "")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.lazy(), *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = self.lazy().get(cmd_name)
        eager = super().get_command(ctx, cmd_name)
        command: click.Command | None = import_module(module).command if module else eager
        if command and all("--verbose" not in param.opts for param in command.params):
            _verbose_option(hidden=True)(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = not args or args[0].startswith("-") or args[0] in self.lazy()
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each command, never cut."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence(c)) for name, c in self.shown_commands(ctx)])

    def shown_commands(self, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
        """Yield the commands that the help lists."""
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command and not command.hidden:
                yield name, command


class TopGroup(LazyGroup):
    """A group with sections, in which a plain command can have others below it: `run cancel`."""

    def lazy(self) -> Mapping[str, str]:
        return command_modules()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if rest and not isinstance(command, click.Group):
            nested = LazyGroup(name).get_command(ctx, rest[0])
            if nested:
                return f"{name} {rest[0]}", nested, rest[1:]
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each command, by section."""
        commands = list(self.shown_commands(ctx))
        width = max(len(name) for name, _ in commands)
        for section in HelpSection:
            rows = [
                (name.ljust(width), sentence(command))
                for name, command in commands
                if (help_section(command) or HelpSection.OPERATE) is section
            ]
            formatter.write_paragraph()
            formatter.write_text(section)
            with formatter.indentation():
                formatter.write_dl(rows)


def subcommands(ctx: click.Context) -> Iterator[click.Context]:
    """Yield a context for each subcommand of a context's command."""
    command = ctx.command
    if not isinstance(command, click.Group):
        if ctx.parent is None or not isinstance(ctx.parent.command, TopGroup):
            return
        command = LazyGroup(ctx.info_name)
    for name in command.list_commands(ctx):
        child = command.get_command(ctx, name)
        if child:
            yield click.Context(child, parent=ctx, info_name=name)


def sentence(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    return command.get_short_help_str(limit=1000)


def command_modules(group: str = "") -> dict[str, str]:
    """Return the modules of a group's commands, or of the top-level commands."""
    outer = (group,) if group else ()
    found = {path[-1]: module for path, module in feature_modules().items() if path[:-1] == outer}
    return dict(sorted(found.items()))


@cache
def feature_modules(kind: str = "command") -> dict[tuple[str, ...], str]:
    """Return the module of each command of a feature, or of each tool, by the words that call it.

    `command.py` in a feature's folder has the command of that name, `command_channel_yank.py` has
    `channel yank`.
    """
    found: dict[tuple[str, ...], str] = {}
    for feature in pkgutil.iter_modules(import_module(FEATURES).__path__):
        folders = [f"{folder}/{feature.name}" for folder in import_module(FEATURES).__path__]
        for module in pkgutil.iter_modules(folders):
            first, *words = module.name.split("_")
            if first == kind:
                found[tuple(words or [feature.name])] = f"{FEATURES}.{feature.name}.{module.name}"
    return found
