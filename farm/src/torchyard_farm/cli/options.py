"""Options that several commands share."""

from pathlib import Path

import click

from torchyard.errors import UsageError
from torchyard_farm.settings.dates import format_moment, parse_moment

farm_argument = click.argument(
    "folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path)
)


def _moment(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    try:
        return text and format_moment(parse_moment(text))
    except ValueError as error:
        msg = f"`{text}` is not a time"
        raise UsageError(msg, hint="write it in UTC: 2026-11-15T02:00:00Z") from error


due_option = click.option(
    "--due",
    metavar="MOMENT",
    callback=_moment,
    help="When it was due, if not now: 2026-11-15T02:00:00Z.",
)
