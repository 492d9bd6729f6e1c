"""`torchyard store revoke`: no longer trust a key."""

import click

from torchyard.cli.output import calls


@click.command("revoke")
@click.argument("key")
@click.option("--reason", required=True, metavar="TEXT", help="Why; messages show it.")
@calls("revoke_key")
def command() -> None:
    """Revoke a key in the trust file, which TORCHYARD_TRUST names.

    Nothing that it has signed counts any more, neither earlier nor later results.
    """
