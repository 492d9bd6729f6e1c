"""The JSON schemas of what commands print with `--json`."""

from collections.abc import Iterator
from pkgutil import resolve_name

import click
import msgspec

from torchyard.cli.lazy_group import subcommands
from torchyard.cli.output import REPORTS, VALUES
from torchyard.config.schema import DIALECT, file_schema
from torchyard.config.tables import load_tables
from torchyard.errors import UsageError
from torchyard.model.event import AnyEvent
from torchyard.model.suggest import did_you_mean
from torchyard.terminal.json_output import ErrorDocument

_ANYWHERE = {"error": ErrorDocument, "events": AnyEvent}
"""`events` describes one line of `build --json`, `run --json` and `status --json`."""


def schema_text(name: str, root: click.Context) -> bytes:
    """Return a schema by name, such as `timings`; `torchyard` describes the configuration."""
    if name == "torchyard":
        schema = file_schema(load_tables())
    elif value := printed_values(root).get(name):
        schema = {**DIALECT, **msgspec.json.schema(value)}
    else:
        msg = f"there is no schema `{name}`"
        raise UsageError(msg, hint=did_you_mean(name, printed_values(root)))
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def printed_values(root: click.Context) -> dict[str, object]:
    """Return the types of all values that commands read or print, by schema name."""
    for _ in walk(root):
        pass  # imports all commands
    reported = {name.replace("_", "-"): report.value_type for name, report in REPORTS.items()}
    written = {name: resolve_name(value) for name, value in VALUES.items()}
    return _ANYWHERE | written | reported


def walk(context: click.Context) -> Iterator[click.Context]:
    """Yield a command and all its subcommands."""
    yield context
    for below in subcommands(context):
        yield from walk(below)
