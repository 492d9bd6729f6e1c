"""The program `torchyard`: its commands, and the one place where errors end."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, NoReturn

import click

from torchyard import __version__
from torchyard.errors import TorchyardError, UsageError


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    lazy: ClassVar[Mapping[str, str]] = {}
    """Which module under `torchyard.cli` has each command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(f"torchyard.cli.{self.lazy[cmd_name]}").command
        return command


class _Commands(LazyGroup):
    lazy: ClassVar[Mapping[str, str]] = {
        "init": "init",
        "plan": "plan",
        "explain": "explain",
        "config": "config",
    }


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="torchyard")
@click.option("--traceback", is_flag=True, help="Show where in the code an error came from.")
@click.pass_context
def torchyard(ctx: click.Context, *, traceback: bool) -> None:
    """Build, prove and ship PyTorch and everything compiled against it.

    One file, torchyard.toml, says which binaries should exist.
    """
    ctx.obj = traceback


def main() -> NoReturn:
    """Run the program and exit with the code that fits."""
    try:
        torchyard(standalone_mode=False)
    except TorchyardError as error:
        _fail(error)
    except click.ClickException as error:
        hint = None
        if isinstance(error, click.UsageError) and error.ctx:
            hint = f"see `{error.ctx.command_path} --help`"
        _fail(UsageError(error.format_message(), hint=hint))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    sys.exit(0)


def _fail(error: TorchyardError) -> NoReturn:
    if "--traceback" in sys.argv[1:]:
        raise error
    from torchyard.report.console import print_error

    print_error(error)
    sys.exit(error.exit_code)
