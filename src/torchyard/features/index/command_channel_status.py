"""`torchyard channel status`: the status of a project."""

import click

from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


@click.command("status")
@channel_argument
@click.argument("project")
@click.argument("status", type=click.Choice(("active", "archived", "quarantined", "deprecated")))
@click.option("--reason", default="", metavar="TEXT", help="The reason, which readers see.")
@file_option
@reports("set_project_status")
def command() -> None:
    """Set the status of a PROJECT (PEP 792).

    An archived project accepts no new files, a deprecated one should no longer be used, and the
    files of a quarantined one are hidden until it is active again.
    """
