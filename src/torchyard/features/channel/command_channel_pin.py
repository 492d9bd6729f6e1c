"""`torchyard channel pin`: versions of a channel that stay, and their exact files."""

import click

from torchyard.cli.options import channel_argument, file_option, only_option, variant_option
from torchyard.cli.output import reports


@click.command("pin")
@channel_argument
@click.argument("selectors", nargs=-1, metavar="[VERSION | REQUIREMENT]...")
@variant_option
@only_option
@click.option("--as", "name", metavar="NAME", help="Name of the pin, instead of its version.")
@click.option("--reason", default="", metavar="TEXT", help="The reason, which readers see.")
@click.option(
    "--to", "archive", metavar="CHANNEL", help="Also copy the files into another channel."
)
@click.option("--remove", metavar="NAME", help="Remove a pin.")
@file_option
@reports("pin_files")
def command() -> None:
    """Keep versions of CHANNEL, and list their files with hashes.

    They are never pruned. VERSION means all projects with it, a SELECTOR is a requirement:
    torch==2.14.0.dev20261115. The pages pins/NAME.json and, for each variant,
    pins/NAME/VARIANT.txt name the files with their hashes; the latter are requirements for `pip
    install --require-hashes`.
    """
