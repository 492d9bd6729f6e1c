"""`torchyard store trust`: trust the results of a maker."""

import click

from torchyard.cli.output import calls


@click.command("trust")
@click.argument("name")
@click.argument("key", metavar="[KEY]", required=False)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    metavar="STAGE",
    help="Stage whose results count: package, check …; by default, all.",
)
@calls("trust_maker")
def command() -> None:
    """Add a maker to the trust file, which TORCHYARD_TRUST names.

    NAME is how messages call the maker, KEY is its public key, by default this machine's. A maker
    can have several keys: to change keys, add the new one.
    """
