"""Options that the chosen engine adds to `torchyard build`, from the fields of its class."""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from torchyard.errors import HostError, UsageError

if TYPE_CHECKING:  # slow to import
    from msgspec.inspect import Field

    from torchyard.engines.engine import Engine

LOCAL = "local"
_NAME = "--engine"


class EngineCommand(click.Command):
    """A command with additional options of the engine that --engine names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_NAME] = _named_engine(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from torchyard.engines.registry import engine_names

            for name in engine_names():
                if error.option_name in _option_names(name):
                    msg = f"`{error.option_name}` is for the {name} engine"
                    raise UsageError(msg, hint=f"add {_NAME} {name}") from error
            raise

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's parameters, with the engine's options after --engine."""
        from torchyard.engines.registry import find_engine

        params = super().get_params(ctx)
        behind = 1 + next(n for n, param in enumerate(params) if _NAME in param.opts)
        chosen = engine_options(find_engine(ctx.meta.get(_NAME, LOCAL)))
        return [*params[:behind], *chosen, *params[behind:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and below them the options of other installed engines."""
        from torchyard.engines.registry import engine_names, find_engine

        super().format_options(ctx, formatter)
        for name in engine_names():
            if name == ctx.meta.get(_NAME, LOCAL):
                continue
            try:
                records = [o.get_help_record(ctx) for o in engine_options(find_engine(name))]
            except HostError as error:  # a broken plug-in must not break the help
                records = [(f"{_NAME} {name}", str(error))]
            if records:
                with formatter.section(f"Options of {_NAME} {name}"):
                    formatter.write_dl([record for record in records if record])


def _named_engine(args: list[str]) -> str:
    """Return the engine named on a command line that is not parsed yet."""
    name = LOCAL
    for before, arg in zip(["", *args], args, strict=False):
        if arg == "--":
            break
        if before == _NAME:
            name = arg
        elif arg.startswith(f"{_NAME}="):
            name = arg.partition("=")[2]
    return name


def _option_names(engine: str) -> Iterator[str]:
    from torchyard.engines.registry import find_engine

    with suppress(HostError):  # an engine that can't be loaded has no options
        for option in engine_options(find_engine(engine)):
            yield from option.opts


def engine_options(engine: "type[Engine]") -> list[click.Option]:
    """Return the options of an engine, from the fields of its class."""
    from msgspec import inspect

    described = inspect.type_info(engine)
    if not isinstance(described, inspect.StructType):
        return []
    return [_option(field) for field in described.fields]


def _option(field: "Field") -> click.Option:
    from msgspec import NODEFAULT, inspect

    described, kind = field.type, field.type
    help_text, metavar = "", None
    if isinstance(described, inspect.Metadata):
        help_text = str((described.extra_json_schema or {}).get("description", ""))
        metavar = (described.extra or {}).get("metavar")
        kind = described.type
    if isinstance(kind, inspect.UnionType):
        kind = next(t for t in kind.types if not isinstance(t, inspect.NoneType))
    flag = f"--{field.name.replace('_', '-')}"
    default = None if field.default is NODEFAULT else field.default
    match kind:
        case inspect.BoolType():
            return click.Option([flag], is_flag=True, help=help_text)
        case inspect.IntType():
            bounds = click.IntRange(kind.ge, kind.le)
            return click.Option(
                [flag], type=bounds, metavar=metavar, default=default, help=help_text
            )
        case inspect.LiteralType():
            choice = click.Choice([str(value) for value in kind.values])
            return click.Option([flag], type=choice, default=default, help=help_text)
        case _:
            return click.Option([flag], metavar=metavar, default=default, help=help_text)
