"""`torchyard store key`: make a key for a machine that builds."""

import click

from torchyard.cli.output import calls


@click.command("key")
@click.argument("path", metavar="FILE")
@calls("new_key")
def command() -> None:
    """Make a private key for this machine, and print its public key.

    Set TORCHYARD_KEY to the file's path: then results that this machine makes are signed. Each
    machine has its own key, which never leaves it.
    """
