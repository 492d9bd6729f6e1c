"""`torchyard verify`: who made packages, from which commit, with what."""

import click

from torchyard.cli.lazy_group import HelpSection, in_section
from torchyard.cli.output import reports


@in_section(HelpSection.VERIFY)
@click.command("verify")
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...")
@click.option("--policy", metavar="FILE", help="Trust file, instead of that of TORCHYARD_TRUST.")
@reports("verify_packages")
def command() -> None:
    """Show who made packages, from which commit, with what.

    PACKAGE is a file with its signed statement beside it (PACKAGE.intoto.jsonl), a directory with
    such files, or the directory or address of a channel, whose packages are not downloaded: their
    digests are compared. A statement counts if a maker trusted for packages signed it for these
    bytes.
    """
