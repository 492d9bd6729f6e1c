"""`torchyard config`: what the configuration says, and what it may say."""

import click
import msgspec

from torchyard.cli.options import file_option, json_option, set_option
from torchyard.config.load import config_of, read_document
from torchyard.config.schema import file_schema
from torchyard.config.show import settings
from torchyard.config.tables import load_tables
from torchyard.reports.document import encode
from torchyard.reports.plan.document import ConfigDocument, ValueDocument
from torchyard.reports.plan.text import settings_report
from torchyard.terminal.console import show, write


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


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of torchyard.toml."""
    write(msgspec.json.format(msgspec.json.encode(file_schema(load_tables())), indent=2) + b"\n")
