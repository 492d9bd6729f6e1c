"""`torchyard config`: the configuration, its schema and its tables."""

import click

from torchyard.cli.lazy_group import HelpSection, LazyGroup, in_section
from torchyard.cli.options import file_option, set_option
from torchyard.cli.output import calls, reports
from torchyard.terminal.console import write


@in_section(HelpSection.START)
@click.group("config", cls=LazyGroup)
def command() -> None:
    """Show the configuration, and bring its tables up to date."""


@command.command("show")
@file_option
@set_option
@reports("list_settings")
def config_show() -> None:
    """Print every value, and whether the file or a default sets it."""


@command.command("update")
@file_option
@click.option("--torch", "releases", multiple=True, metavar="RELEASE", help="Read this release.")
@click.option("--write", is_flag=True, help="Append the rows to the file.")
@calls("update_tables")
def config_update() -> None:
    """Read new releases from an index, as rows for [tables].

    Without --torch, these are releases of torch that the file needs, and all newer ones than in
    torchyard's tables. The wheels show the libraries, Pythons and GPUs that a release was built
    for, and the headers of a new CUDA version the compilers it accepts.
    """


@command.command("schema")
@click.argument("name", default="torchyard")
@click.pass_context
def config_schema(ctx: click.Context, name: str) -> None:
    """Print the JSON schema of torchyard.toml, or of a command's output.

    NAME is the command, such as timings or channel-prune. `error` describes the output of a failed
    command, `events` the lines that build, run and status print.
    """
    from torchyard.cli.schemas import schema_text

    write(schema_text(name, ctx.find_root()))
