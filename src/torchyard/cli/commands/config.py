"""`torchyard config`: what the configuration says, and what it may say."""

import click
import msgspec

from torchyard.cli.options import file_option, json_option, set_option
from torchyard.config.load import config_of, read_document
from torchyard.config.schema import file_schema
from torchyard.config.show import settings
from torchyard.config.tables import load_tables
from torchyard.reports.plan.document import ConfigDocument, ValueDocument
from torchyard.reports.plan.text import settings_report
from torchyard.terminal.console import say, show, talk, write
from torchyard.terminal.json_output import encode


@click.group("config")
def command() -> None:
    """Look at the configuration."""


@command.command("show")
@file_option
@set_option
@json_option
def show_values(*, file: str, changes: tuple[str, ...], as_json: bool) -> None:
    """Print every value and where it came from: the file, the command line or a default."""
    document = read_document(file, changes)
    config_of(file, document)
    rows = [(s.key, s.value, str(s.origin)) for s in settings(document)]
    if as_json:
        values = [ValueDocument(key=key, value=value, origin=origin) for key, value, origin in rows]
        write(encode(ConfigDocument(values=values)))
    else:
        show(settings_report(rows))


@command.command("update")
@file_option
@click.option("--torch", "releases", multiple=True, metavar="RELEASE", help="Read this release.")
@click.option("--write", "is_written", is_flag=True, help="Append the rows to the file.")
def update(*, file: str, releases: tuple[str, ...], is_written: bool) -> None:
    """Read new releases of torch, CUDA and Python from an index, as rows for [tables].

    Without --torch, these are the releases that the file needs, and all that are newer than those
    that torchyard knows. The wheels say which libraries, Pythons and GPUs a release was built for,
    and the headers of a new CUDA version which compilers it takes.
    """
    from torchyard.app.config_update import update_tables

    found = update_tables(file, releases=releases, write=is_written, say=say)
    if not found.text:
        talk("the tables have everything that the index has")
    elif is_written:
        talk(f"wrote {sum(map(len, found.rows.values()))} rows to {file}")
    else:
        write(found.text.lstrip("\n"))


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of torchyard.toml."""
    write(msgspec.json.format(msgspec.json.encode(file_schema(load_tables())), indent=2) + b"\n")
