"""Arguments that several commands share."""

from pathlib import Path

import click

farm_argument = click.argument(
    "folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path)
)
