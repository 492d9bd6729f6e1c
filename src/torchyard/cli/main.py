"""The program `torchyard`: its commands, and the only handler of errors."""

import gc
import os
import sys
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, cast

import click

from torchyard.cli.lazy_group import Invocation, TopGroup, show_actions, verbose_option
from torchyard.errors import INTERRUPTED, TorchyardError, UsageError
from torchyard.host.files import complete_environment
from torchyard.version import __version__
from torchyard.workspace.faults import host_error, redacted_diagnostics

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class _Commands(TopGroup):
    """The commands of torchyard and of plug-ins."""

    @cached_property
    def plug_ins(self) -> "dict[str, EntryPoint]":
        """Return the commands of plug-ins; only unknown names and help need them."""
        from torchyard.host.entry_points import entry_points_in

        found = entry_points_in("torchyard.commands")
        return {name: point for name, point in found.items() if name not in self.lazy()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.plug_ins})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy() or cmd_name not in self.plug_ins:
            return super().get_command(ctx, cmd_name)
        from torchyard.host.entry_points import load

        return cast("click.Command", load(self.plug_ins[cmd_name], f"torchyard {cmd_name}"))

    def hint(self, ctx: click.Context, name: str) -> str | None:
        from torchyard.config.plug_ins import install_hint

        return install_hint("commands", name) or super().hint(ctx, name)


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: object) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    if ctx.ensure_object(Invocation).verbose:
        from torchyard.workspace.about import about_lines

        click.echo("\n".join(about_lines()))
    else:
        click.echo(f"torchyard {__version__}")
    ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version; with -v, also the versions of what torchyard uses.",
)
@verbose_option
@click.option("--traceback", is_flag=True, help="Show where in the code an error came from.")
@click.pass_context
def torchyard(ctx: click.Context, *, traceback: bool) -> None:
    """Plan, build, verify and publish PyTorch packages, and everything compiled against PyTorch.

    One file, torchyard.toml, says which packages should exist.
    """
    gc.enable()
    invocation = ctx.ensure_object(Invocation)
    invocation.traceback = traceback
    if invocation.verbose:
        show_actions()
    if "@" in "".join(os.environ.values()) or "_PASSWORD" in "".join(os.environ):
        from torchyard.host.secrets import fetching_secrets, take

        take(fetching_secrets())


def main() -> NoReturn:
    """Run the program, and exit with its code."""
    if "_TORCHYARD_COMPLETE" in os.environ:
        import_module("torchyard.cli.completion")  # click asks for the shell's class at once
    complete_environment()
    gc.disable()  # loading creates no garbage; the command turns this on again
    invocation = Invocation()
    if "TORCHYARD_LOG" in os.environ:
        import_module("torchyard.cli.verbose").join_log()
    try:
        torchyard(standalone_mode=False, obj=invocation)
    except TorchyardError as error:
        _fail(error, invocation)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(UsageError.exit_code)
    except click.ClickException as error:
        hint = None
        if isinstance(error, click.UsageError) and error.ctx:
            hint = f"see `{error.ctx.command_path} --help`"
        _fail(UsageError(error.format_message(), hint=hint), invocation)
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("\ninterrupted\n")
        sys.exit(INTERRUPTED)
    except OSError as error:
        _fail(host_error(error), invocation)
    sys.exit(0)


def _fail(error: TorchyardError, invocation: Invocation) -> NoReturn:
    from torchyard.terminal.console import has_printed, print_error, write

    if invocation.traceback:
        from traceback import format_exception

        from torchyard.config.credentials import without_secrets
        from torchyard.terminal.untrusted import neutral

        sys.stderr.write(neutral(without_secrets("".join(format_exception(error)))))
        sys.exit(TorchyardError.exit_code)
    error.diagnostics = redacted_diagnostics(error)
    print_error(error)
    if invocation.as_json and not has_printed():
        from torchyard.terminal.json_output import encode, error_document

        write(encode(error_document(error)))
    sys.exit(error.exit_code)
