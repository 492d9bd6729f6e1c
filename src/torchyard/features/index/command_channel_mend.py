"""`torchyard channel mend`: rewrite pages of a channel."""

import click

from torchyard.cli.options import channel_argument, file_option
from torchyard.cli.output import reports


@click.command("mend")
@channel_argument
@click.argument("parts", nargs=-1, metavar="[PART]...")
@file_option
@reports("mend_pages")
def command() -> None:
    """Rewrite pages of CHANNEL that are damaged or outdated.

    A publisher that was killed may leave some. PART is simple/torch, conda/linux-64 or
    libtorch/torch; without any, all pages are checked.
    """
