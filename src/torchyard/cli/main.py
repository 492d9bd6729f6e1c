"""The program `torchyard`: its commands, and the one place where errors end."""

import gc
import sys
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, NoReturn, cast

import click

from torchyard import __version__
from torchyard.errors import Diagnostic, ElsewhereError, HostError, TorchyardError, UsageError
from torchyard.host.files import is_full
from torchyard.model.suggest import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    room: ClassVar[str] = "torchyard.cli.commands"
    lazy: ClassVar[Mapping[str, str]] = {}
    """Which module in the room has each command."""

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
            raise UsageError(msg, hint=did_you_mean(args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


class _Commands(LazyGroup):
    lazy: ClassVar[Mapping[str, str]] = {
        "init": "init",
        "plan": "plan",
        "explain": "explain",
        "config": "config",
        "build": "build",
        "status": "status",
        "run": "run",
        "cancel": "cancel",
        "shell": "shell",
        "rebuild": "rebuild",
        "check": "check",
        "diff": "diff",
        "repair": "repair",
        "smoke": "smoke",
        "coverage": "coverage",
        "which": "which",
        "index": "index",
        "publish": "publish",
        "mirror": "mirror",
        "store": "store",
        "promote": "promote",
        "yank": "yank",
        "rollback": "rollback",
        "pin": "pin",
        "prune": "prune",
        "snapshot": "snapshot",
        "tool": "tool",
        "toolchain": "toolchain",
    }

    @cached_property
    def entry_points_in(self) -> "dict[str, EntryPoint]":
        """Commands of other distributions; looked for if one is none of ours, and for help."""
        from torchyard.host.entry_points import entry_points_in

        found = entry_points_in("torchyard.commands")
        return {name: point for name, point in found.items() if name not in self.lazy}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self.entry_points_in]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy or cmd_name not in self.entry_points_in:
            return super().get_command(ctx, cmd_name)
        from torchyard.host.entry_points import load

        return cast("click.Command", load(self.entry_points_in[cmd_name], f"torchyard {cmd_name}"))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="torchyard")
@click.option("--traceback", is_flag=True, help="Show where in the code an error came from.")
def torchyard(*, traceback: bool) -> None:  # noqa: ARG001 - `_fail` asks sys.argv
    """Build, prove and ship PyTorch and everything compiled against it.

    One file, torchyard.toml, says which binaries should exist.
    """
    gc.enable()


def main() -> NoReturn:
    """Run the program and exit with the code that fits."""
    gc.disable()  # loading a command leaves no garbage; it turns this on again
    try:
        torchyard(standalone_mode=False)
    except TorchyardError as error:
        _fail(error)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(UsageError.exit_code)
    except click.ClickException as error:
        hint = None
        if isinstance(error, click.UsageError) and error.ctx:
            hint = f"see `{error.ctx.command_path} --help`"
        _fail(UsageError(error.format_message(), hint=hint))
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("\ninterrupted\n")
        sys.exit(INTERRUPTED)
    except OSError as error:
        _fail(refusal(error))
    sys.exit(0)


def refusal(error: OSError) -> TorchyardError:
    """What the machine would not do, and whether another one might."""
    if is_full(error):
        hint = "make room, and start the same command again"
        return ElsewhereError(f"the disk is full: {error}", hint=hint, reason="disk")
    return HostError(f"the machine refused: {error}")


def _fail(error: TorchyardError) -> NoReturn:
    from torchyard.terminal.console import print_error

    if "--traceback" in sys.argv[1:]:
        from traceback import format_exception

        from torchyard.config.credentials import without_secrets

        sys.stderr.write(without_secrets("".join(format_exception(error))))
        sys.exit(TorchyardError.exit_code)
    print_error(TorchyardError.of(faults_of(error)))
    sys.exit(error.exit_code)


def faults_of(error: TorchyardError) -> tuple[Diagnostic, ...]:
    """What went wrong, without the caller's secrets."""
    from torchyard.config.credentials import without_secrets as plain

    return tuple(
        Diagnostic(
            plain(told.what),
            told.span and told.span._replace(text=plain(told.span.text)),
            told.hint and plain(told.hint),
        )
        for told in error.diagnostics
    )
