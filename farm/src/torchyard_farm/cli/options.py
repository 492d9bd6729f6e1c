"""Arguments that several commands share."""

from pathlib import Path

import click

farm_argument = click.argument(
    "folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path)
)

due_option = click.option(
    "--due", metavar="MOMENT", help="When it was due, if not now: 2026-11-15T02:00:00Z."
)
