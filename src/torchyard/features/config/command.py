"""`torchyard config`: what the configuration says, and what it may say."""

import click

from torchyard.cli.options import file_option, set_option
from torchyard.cli.output import calls, reports


@click.group("config")
def command() -> None:
    """Look at the configuration."""


@command.command("show")
@file_option
@set_option
@reports("list_settings")
def config_show() -> None:
    """Print every value and where it came from: the file, the command line or a default."""


@command.command("update")
@file_option
@click.option("--torch", "releases", multiple=True, metavar="RELEASE", help="Read this release.")
@click.option("--write", is_flag=True, help="Append the rows to the file.")
@calls("update_tables")
def config_update() -> None:
    """Read new releases of torch, CUDA and Python from an index, as rows for [tables].

    Without --torch, these are the releases that the file needs, and all that are newer than those
    that torchyard knows. The wheels say which libraries, Pythons and GPUs a release was built for,
    and the headers of a new CUDA version which compilers it takes.
    """


@command.command("schema")
@calls("file_schema_text")
def config_schema() -> None:
    """Print the JSON schema of torchyard.toml."""
