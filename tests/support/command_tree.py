"""The commands of torchyard, by the words that call them."""

from collections.abc import Iterator

import click

from torchyard.cli.lazy_group import subcommands
from torchyard.cli.main import torchyard


def all_commands() -> dict[str, click.Command]:
    """Return all commands that help shows, by their words; the program's are empty."""
    return dict(_below(click.Context(torchyard), ""))


def _below(ctx: click.Context, words: str) -> Iterator[tuple[str, click.Command]]:
    yield words.strip(), ctx.command
    for child in subcommands(ctx):
        if not child.command.hidden:
            yield from _below(child, f"{words} {child.info_name}")
