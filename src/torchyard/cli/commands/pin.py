"""`torchyard pin`: versions of a channel that stay, and exactly which files they are."""

from typing import TYPE_CHECKING

import click

from torchyard.cli.options import (
    channel_argument,
    file_option,
    json_option,
    only_option,
    variant_option,
)
from torchyard.cli.output import show_document
from torchyard.errors import UsageError
from torchyard.terminal.console import talk, write
from torchyard.workspace.channel_config import channel_named, check_origin, load_if_present
from torchyard.workspace.clock import current_moment
from torchyard.workspace.locations import open_channel

if TYPE_CHECKING:
    from torchyard.publish.select import Selection


@click.command("pin")
@channel_argument
@click.argument("selectors", nargs=-1, metavar="[VERSION | SELECTOR]...")
@variant_option
@only_option
@click.option("--as", "name", metavar="NAME", help="Name of the pin, in place of its version.")
@click.option("--reason", default="", metavar="TEXT", help="The reason, which readers see.")
@click.option(
    "--to", "archive", metavar="CHANNEL", help="Bring the files into another channel, too."
)
@click.option("--remove", metavar="NAME", help="Remove a pin.")
@file_option
@json_option
def command(
    *,
    channel: str,
    selectors: tuple[str, ...],
    variants: tuple[str, ...],
    files: tuple[str, ...],
    name: str | None,
    reason: str,
    archive: str | None,
    remove: str | None,
    file: str,
    as_json: bool,
) -> None:
    """Keep versions of CHANNEL whatever is pruned, and write down exactly which files they are.

    VERSION means all projects that have it, a SELECTOR is a requirement: torch==2.14.0.dev20261115.
    The pages pins/NAME.json and, for each variant, pins/NAME/VARIANT.txt name the files with their
    hashes; the latter are requirements for `pip install --require-hashes`.
    """
    from torchyard.app.promote import archive_packages
    from torchyard.publish.channel.draft import ChangeReason
    from torchyard.publish.ops.pin import add_channel_pin, remove_channel_pin
    from torchyard.reports.channel.document import PinDocument, changed_document
    from torchyard.reports.channel.text import pin_report
    from torchyard.terminal.json_output import encode

    if bool(selectors) == (remove is not None):
        msg = "a pin is made or removed, not both" if remove else "which version?"
        raise UsageError(msg, hint="write torch==2.14.0.dev20261115, or --remove NAME")
    place = open_channel(channel, file)
    now = current_moment()
    if remove:
        head = remove_channel_pin(place, remove, ChangeReason(f"unpin {remove}", now))
        talk(f"{place.url}: the pin {remove} is gone")
        if as_json:
            write(encode(changed_document(place.url, head, {})))
        return
    if archive:
        check_origin(channel_named(load_if_present(file), archive, file), channel, file)
    selection = _selection(selectors, variants, files)
    name = name or selectors[0].rpartition("=")[2]
    because = f": {reason}" if reason else ""
    order = ChangeReason(f"pin {selection} as {name}{because}", now)
    page = add_channel_pin(place, selection, name, reason, order)
    if archive:
        kept = archive_packages(place, selection, archive, order, file)
        add_channel_pin(kept, selection, name, reason, order)
    document = PinDocument(channel=place.url, pin=page)
    show_document(document, pin_report, as_json=as_json)


def _selection(
    selectors: tuple[str, ...], variants: tuple[str, ...], files: tuple[str, ...]
) -> "Selection":
    """Return the selection; a version alone means all projects that have it."""
    from torchyard.package.versions import is_version
    from torchyard.publish.select import parse_selection

    words = [f"*=={text}" if is_version(text) else text for text in selectors]
    return parse_selection(words, variants, files)
